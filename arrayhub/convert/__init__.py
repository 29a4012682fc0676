"""Layer 7: functions that import arrays (`asarray`) and export them to libraries (`convert`, `like`, `adapt`)."""

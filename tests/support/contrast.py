"""Contrast of two colors, and the backgrounds of common pages."""

LIGHT_PAGES, DARK_PAGES = ("#ffffff", "#f6f8fa"), ("#000000", "#0d1117", "#14181e", "#111418", "#1b1f25")


def contrast(one, other):
    """Return the contrast ratio of two colors as WCAG 2 defines it, from 1 to 21."""

    def luminance(color):
        parts = [byte / 255 for byte in bytes.fromhex(color.removeprefix("#"))]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one) + 0.05, luminance(other) + 0.05))
    return high / low

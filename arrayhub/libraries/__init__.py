"""Layer 4: the table of libraries (`known`), and a module for each library that needs more than its protocols."""

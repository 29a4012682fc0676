"""What shows an array to people: pictures of its layout, and reports on what is installed here."""

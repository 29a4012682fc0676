"""The conformance kit against real libraries: how each makes and reads arrays, and the page of the reports."""

"""Tests of real libraries with the conformance kit, and the page of the reports."""

"""The matrix of producers, element types and layouts that are passed through arrayhub to consumers."""

"""The methods of the benchmark, each with its grid as data and its readings as options."""

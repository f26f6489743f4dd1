"""Report primitives that know no benchmark: tables with their writers, rankings, figures."""

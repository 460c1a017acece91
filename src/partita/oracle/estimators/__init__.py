"""OracleCRF."""

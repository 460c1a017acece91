"""DependencyCRF."""

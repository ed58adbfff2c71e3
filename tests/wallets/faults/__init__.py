"""Parts of the service that fail, and dapps that mean harm, with two web processes."""

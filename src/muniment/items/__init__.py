"""Items: values that a program keeps under a namespace and a key, each an ordinary fact that passes every gate."""

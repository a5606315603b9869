"""The MCP server: the tools that an agent needs and no others, over stdio and over streamable HTTP."""

# Where a server answers MCP.
PATH = "/mcp"

import { McpErrorResponse } from '@thv/mcp/client/client-errors'

/** An error that this process answers in place of a backend, which was not asked: it says nothing about the backend's health. */
export class LocalRefusal extends McpErrorResponse {}

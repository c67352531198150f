import { createServer, type Server, type ServerOptions } from 'node:http'
import type { HttpLimits } from './http-limits.ts'

/** Node's server with our limits, those of them that it can keep itself. */
export function createNodeServer(limits: HttpLimits, create: (settings: ServerOptions) => Server = createServer): Server {
  const server = create({
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    // A backstop for unread bodies; those that are read are watched by SlowBodies.
    requestTimeout: limits.headersTimeoutMs + 2 * limits.bodyTimeoutMs,
    connectionsCheckingInterval: Math.max(100, Math.min(5_000, limits.headersTimeoutMs / 2)),
    keepAliveTimeout: limits.keepAliveMs,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    noDelay: true,
  })
  server.maxHeadersCount = limits.maxHeaders + 1
  server.maxConnections = limits.maxConnections
  server.timeout = limits.stallMs
  return server
}

import { createGateway } from '@thv/gateway/gateway'
import { peerCheckFromEnv } from '@thv/http/server/peer-check'
import { isThvError, ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { compilePipeline } from '@thv/middleware/pipeline/pipeline'
import type { Logger } from '@thv/telemetry/log'
import { createMetrics } from '@thv/telemetry/metrics'
import { registryState } from '../registry/registry-state.ts'
import { searchRegistry } from '../registry/search-registry.ts'
import { VERSION } from '../text/version.ts'
import { notedUrl, noteUrl } from './declare-platform-tools.ts'
import { type PlatformToolsDeps, platformTools } from './platform-tools.ts'
import { ToolBackend } from './tool-backend.ts'

export interface PlatformToolsServer {
  /** Ends with `/mcp`. */
  readonly url: string
  stop(): Promise<void>
}

export interface PlatformToolsServerOptions {
  /** The data folder of the platform: the address stays the same from start to start where it can. */
  readonly folder: string
  /** With the rights of the user who runs the platform. */
  readonly client: KubeClient
  /** Which local users are served. */
  readonly peerEnv: Readonly<Record<string, string>>
  readonly log: Logger
}

const CALL_LIMIT_MS = 10_000

/** A small MCP server in this process, on loopback and outside of the cluster: the example of a server that has no pod. */
export async function startPlatformTools({ folder, client, peerEnv, log }: PlatformToolsServerOptions): Promise<PlatformToolsServer> {
  const deps = { client, search: registrySearch(client) }
  const port = Number(new URL(notedUrl(folder) ?? 'http://127.0.0.1:0').port)
  const server = await serveTools({ deps, port, peerEnv, log }).catch((error: unknown) => {
    if (port === 0 || !isThvError(error, 'listen_failed')) throw error
    return serveTools({ deps, port: 0, peerEnv, log }) // somebody else has taken it meanwhile
  })
  noteUrl(folder, server.url)
  return server
}

export interface ServeToolsOptions extends Pick<PlatformToolsServerOptions, 'peerEnv' | 'log'> {
  readonly deps: PlatformToolsDeps
  readonly port: number
}

export async function serveTools({ deps, port, peerEnv, log }: ServeToolsOptions): Promise<PlatformToolsServer> {
  const backend = new ToolBackend({
    serverInfo: { name: 'toolhive-platform', version: VERSION, title: 'ToolHive platform' },
    instructions: 'Read-only tools about the local platform: which MCP servers it runs, and which ones its registry knows.',
    tools: platformTools(deps),
    limitMs: CALL_LIMIT_MS,
  })
  const peers = peerCheckFromEnv(peerEnv, { onRefused: (reason) => log.warn(reason, { server: 'platform tools' }) })
  const gateway = createGateway({
    ...{ backend, pipeline: compilePipeline([]), log, metrics: createMetrics() },
    server: { name: 'platform-tools', transport: 'streamable-http', host: '127.0.0.1', port },
    limits: { lameDuckMs: 0 },
    httpLimits: { drainIdleMs: 0, maxConnections: 256 },
    ...(peers !== undefined && { peers }),
  })
  const { url } = await gateway.listen()
  return {
    url: `${url}/mcp`,
    async stop() {
      await gateway.drain(AbortSignal.timeout(2_000))
      await backend.close()
    },
  }
}

function registrySearch(client: KubeClient): PlatformToolsDeps['search'] {
  return async (query, limit, signal) => {
    const registry = await registryState(client, signal)
    if (registry?.url === undefined) throw new ThvError('source_failed', 'the platform has no registry that answers')
    const found = await searchRegistry(registry.url, new URLSearchParams({ q: query, limit: String(limit) }), { signal })
    return found.map(({ server }) => server)
  }
}

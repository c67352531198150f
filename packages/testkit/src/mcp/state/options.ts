import type { EraSupport, TransportKind } from '../wire/protocol.ts'

export interface FixtureOptions {
  /** Which revisions are served. Default `dual`. HTTP+SSE is always legacy. */
  readonly era?: EraSupport
  readonly transport?: TransportKind
  /** 0 or absent: any free port. */
  readonly port?: number
  /** 127.0.0.1 when absent: then only requests for this machine by name are served. Another address is for a container, and serves all. */
  readonly host?: string
  /** Name in serverInfo and in what `who_am_i` reports. */
  readonly name?: string
  /** `auto` answers with JSON until the handler has something to say first; `json` sends related messages to the standalone stream. */
  readonly responseMode?: 'auto' | 'sse' | 'json'
  /** false: the legacy HTTP form assigns no session id and refuses GET and DELETE. */
  readonly sessions?: boolean
  /** Status for a session id that is not known. The standard says 404; 400 is a fault some servers have. */
  readonly unknownSessionStatus?: 404 | 400
  /** Items per page of every list; absent: one page. */
  readonly pageSize?: number
  /** `ttlMs` of every cacheable modern result. Default 0. */
  readonly ttlMs?: number
  /** Serve only the tools with these names. */
  readonly only?: readonly string[]
  /** Adds a tool with an invalid `x-mcp-header`, which HTTP clients of the modern revision must drop. */
  readonly oddTools?: boolean
  /** How long a server-to-client request of the legacy era may take. */
  readonly askTimeoutMs?: number
  readonly keepAliveMs?: number
  readonly maxBodyBytes?: number
  /** The content of the `endpoint` event of HTTP+SSE. `foreign` names another origin, which a client must refuse. */
  readonly sseEndpoint?: 'relative' | 'absolute' | 'foreign'
  /** `latch`: the first request fixes the era of the process. `interleave`: each request names its own. */
  readonly stdioMode?: 'latch' | 'interleave'
  /** The reaction of a legacy-only process to a request before `initialize`. */
  readonly stdioProbe?: 'error' | 'silent' | 'exit'
}

export interface ResolvedOptions extends Required<Omit<FixtureOptions, 'pageSize' | 'only'>> {
  readonly pageSize: number | undefined
  readonly only: readonly string[] | undefined
}

export function resolveOptions(options: FixtureOptions): ResolvedOptions {
  const transport = options.transport ?? 'http'
  if (transport === 'sse' && options.era === 'modern') throw new Error('HTTP+SSE exists in the legacy era only: era must be dual or legacy')
  return {
    era: options.era ?? 'dual',
    transport,
    port: options.port ?? 0,
    host: options.host ?? '127.0.0.1',
    name: options.name ?? 'mcp-fixture',
    responseMode: options.responseMode ?? 'auto',
    sessions: options.sessions ?? true,
    unknownSessionStatus: options.unknownSessionStatus ?? 404,
    pageSize: options.pageSize,
    ttlMs: options.ttlMs ?? 0,
    only: options.only,
    oddTools: options.oddTools ?? false,
    askTimeoutMs: options.askTimeoutMs ?? 60_000,
    keepAliveMs: options.keepAliveMs ?? 15_000,
    maxBodyBytes: options.maxBodyBytes ?? 16 * 1024 * 1024,
    sseEndpoint: options.sseEndpoint ?? 'relative',
    stdioMode: options.stdioMode ?? 'latch',
    stdioProbe: options.stdioProbe ?? 'error',
  }
}

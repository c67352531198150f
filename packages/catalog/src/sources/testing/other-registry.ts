import { startBackend } from '@thv/http/testing/backend'
import type { JsonObject } from '../../catalog-entry.ts'
import { officialKey } from '../../official-envelope.ts'
import { documentText } from './fetch-context.ts'

export interface OtherEntry {
  readonly text?: string
  readonly status?: string
  readonly statusMessage?: string
  readonly publishedAt?: string
  readonly updatedAt: string | undefined
}

/** A small registry of the official API: pages by name, `updated_since` strictly newer and with deleted ones. */
export interface OtherRegistry extends AsyncDisposable {
  readonly url: string
  /** Requested paths, in order. */
  readonly queries: string[]
  /** `roughly`: with what is up to an hour older too. */
  updatedSince: 'answered' | 'roughly' | 'ignored' | 'refused'
  put(name: string, entry: OtherEntry): void
  remove(name: string): void
}

export async function startOtherRegistry(): Promise<OtherRegistry> {
  const entries = new Map<string, OtherEntry>()
  const queries: string[] = []
  const registry = { updatedSince: 'answered' as OtherRegistry['updatedSince'] }

  function answer(query: URLSearchParams): string {
    const asked = Date.parse(query.get('updated_since') ?? '')
    const since = { answered: asked, roughly: asked - 3_600_000, ignored: Number.NaN, refused: Number.NaN }[registry.updatedSince]
    const found = [...entries]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .filter(([, { status }]) => status !== 'deleted' || query.has('updated_since') || query.get('include_deleted') === 'true')
      .filter(([, { updatedAt }]) => Number.isNaN(since) || Date.parse(updatedAt ?? '') > since)
    const from = Number(query.get('cursor') ?? 0)
    const to = from + Number(query.get('limit') ?? 30)
    const servers = found.slice(from, to).map(([name, entry]) => envelope(name, entry))
    const metadata = { count: servers.length, ...(to < found.length && { nextCursor: String(to) }) }
    return `{"servers":[${servers.join()}],"metadata":${JSON.stringify(metadata)}}`
  }

  const backend = await startBackend((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://x')
    queries.push(searchParams.toString())
    if (pathname !== '/v0.1/servers') response.writeHead(404).end()
    else if (searchParams.has('updated_since') && registry.updatedSince === 'refused') response.writeHead(400).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end(answer(searchParams))
  })

  return Object.assign(registry, {
    url: backend.url,
    queries,
    put: (name: string, entry: OtherEntry) => void entries.set(name, entry),
    remove: (name: string) => void entries.delete(name),
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  })
}

function envelope(name: string, { text, status = 'active', statusMessage, publishedAt, updatedAt }: OtherEntry): string {
  const official: JsonObject = {
    status,
    ...(statusMessage === undefined ? {} : { statusMessage }),
    ...(publishedAt === undefined ? {} : { publishedAt }),
    ...(updatedAt === undefined ? {} : { updatedAt }),
    isLatest: true,
  }
  return `{"server":${text ?? documentText(name)},"_meta":${JSON.stringify({ [officialKey]: official })}}`
}

import { createHash } from 'node:crypto'
import { sourceTypeOf } from '@thv/catalog/sources/fetch/source-config'
import { SOURCES_PATH, type SourcesReport } from '@thv/catalog/status/sources-report'
import type { Exchange } from '@thv/http/server/exchange'
import { sendBytes, sendEmpty } from '@thv/http/server/respond'
import { errorMessage } from '@thv/kernel/errors'
import type { RegistryEngine } from '../engine/engine.ts'
import type { SourceRecord } from '../store/registry-store.ts'
import { sendApiError } from './http/api-error.ts'
import { matchesTag } from './pages/conditions.ts'

export interface StatusRoutes {
  /** False: not one of these paths. */
  handle(exchange: Exchange): boolean | Promise<void>
}

/** Reports for the operator, on the internal address. Each has an ETag: a reader that knows the state pays for a comparison only. */
export function createStatusRoutes({ admin }: Pick<RegistryEngine, 'admin'>): StatusRoutes {
  const reports: Readonly<Record<string, () => Promise<Report>>> = {
    [SOURCES_PATH]: async () => tagged(JSON.stringify(sourcesReport(await admin.sources()))),
    '/status/images': () => admin.listedImages(),
  }
  return {
    handle(exchange) {
      const report = Object.hasOwn(reports, exchange.path) ? reports[exchange.path] : undefined
      if (report === undefined) return false
      const { method } = exchange
      if (method === 'GET' || method === 'HEAD') return answer(exchange, report)
      sendApiError(exchange, 405, { error: `${method} is not possible here`, headers: ['Allow', 'GET, HEAD'] })
      return true
    },
  }

  async function answer(exchange: Exchange, make: () => Promise<Report>): Promise<void> {
    let report: Report
    try {
      report = await make()
    } catch (error) {
      sendApiError(exchange, 503, { error: `the sources cannot be read: ${errorMessage(error)}`, headers: ['Retry-After', '5'] })
      return
    }
    sendTagged(exchange, report)
  }
}

interface Report {
  readonly tag: string
  readonly body: string
}

function tagged(body: string): Report {
  return { tag: createHash('sha256').update(body).digest('base64url'), body }
}

/** Pure. Sources made through the admin API are not part of it: the configuration does not name them. */
export function sourcesReport(records: readonly SourceRecord[]): SourcesReport {
  const configured = records.filter(({ creation }) => creation === 'CONFIG')
  const asked = configured.find(({ config }) => config.syncRequest !== undefined)?.config.syncRequest
  return {
    ...(asked !== undefined && { syncRequest: { value: asked, done: configured.every(isTried) } }),
    sources: configured.map(({ config, sync }) => ({
      name: config.name,
      type: sourceTypeOf(config),
      phase: sync.phase,
      attemptCount: sync.attemptCount,
      ...(sync.lastAttempt !== undefined && { lastAttempt: sync.lastAttempt }),
      ...(sync.lastSuccess !== undefined && { lastSuccess: sync.lastSuccess }),
      serverCount: sync.serverCount,
      problemCount: sync.problemCount,
      ...(sync.hash !== undefined && { hash: sync.hash }),
      message: sync.message,
    })),
  }
}

/** A change of the configuration takes the hash away, and only an attempt with the new one ends after it. */
function isTried({ config, sync, updatedAt }: SourceRecord): boolean {
  if (config.managed !== undefined || sync.hash !== undefined) return true
  return sync.lastAttempt !== undefined && Date.parse(sync.lastAttempt) >= Date.parse(updatedAt)
}

function sendTagged(exchange: Exchange, report: Report): void {
  const tag = `"${report.tag}"`
  const headers = ['ETag', tag, 'Cache-Control', 'no-cache']
  const known = exchange.headers['if-none-match']
  if (known !== undefined && matchesTag(known, tag)) sendEmpty(exchange, 304, headers)
  else sendBytes(exchange, 200, { type: 'application/json', body: Buffer.from(report.body), headers })
}

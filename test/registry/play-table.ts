import type { ApiServer } from '../../apps/registry/src/api/testing/api-server.ts'
import type { Row } from './request-table.ts'

/** An answer without what differs between two runs: moments, ids of requests, and how far a sync is. */
export interface PlayedRow {
  readonly row: Row
  readonly status: number
  readonly type: string | undefined
  readonly headers: Readonly<Record<string, unknown>>
  readonly json: unknown
  readonly text: string
}

export async function playTable(api: ApiServer, rows: readonly Row[]): Promise<PlayedRow[]> {
  const played: PlayedRow[] = []
  for (const row of rows) {
    const { method, target, body, headers } = row
    const {
      status,
      headers: sent,
      text,
      json,
    } = await api.call(method, target, { ...(body !== undefined && { body }), ...(headers && { headers }) })
    const type = sent['content-type'] as string | undefined
    played.push({ row, status, type, headers: comparable(sent), json, text: withoutTimes(text) })
  }
  return played
}

/** Tags come from times, so only whether there is one can be compared. */
function comparable({ date: _date, 'x-request-id': _id, etag, ...headers }: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { ...headers, etag: etag !== undefined, 'content-length': headers['content-length'] !== undefined }
}

function withoutTimes(text: string): string {
  return text
    .replaceAll(/"20\d\d-\d\d-\d\dT[\d:.]+Z"/g, '"<time>"')
    .replaceAll(/"expires_at":\d+/g, '"expires_at":0')
    .replaceAll(/"syncStatus":\{.*?"problems":\[[^\]]*\]\}/g, '"syncStatus":"<moving>"')
}

import { isObject, objectsAt } from '@thv/kernel/json'

/** Where the registry server reports the state of its sources, on its internal port. */
export const SOURCES_PATH = '/status/sources'

/** The state of the sources. Read-only, and without any entry: names, counts, times and messages only. */
export interface SourcesReport {
  /** The configuration's `syncRequest`; done once every source has been tried with it. */
  readonly syncRequest?: { readonly value: string; readonly done: boolean }
  readonly sources: readonly SourceReport[]
}

export interface SourceReport {
  readonly name: string
  readonly type: string
  readonly phase: string
  readonly attemptCount: number
  readonly lastAttempt?: string
  readonly lastSuccess?: string
  readonly serverCount: number
  readonly problemCount: number
  readonly hash?: string
  readonly message: string
}

const MAX_TRIGGER = 262_144

/** Undefined for what is no report. Members that are unknown here are ignored: a newer server may say more. */
export function readSourcesReport(text: string): SourcesReport | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(value) || !Array.isArray(value['sources'])) return undefined
  const request = value['syncRequest']
  return {
    ...(isObject(request) && { syncRequest: { value: trigger(request['value']), done: request['done'] === true } }),
    sources: objectsAt(value, 'sources').map((source) => ({
      name: text200(source['name']),
      type: text200(source['type']),
      phase: text200(source['phase']),
      attemptCount: count(source['attemptCount']),
      ...time('lastAttempt', source['lastAttempt']),
      ...time('lastSuccess', source['lastSuccess']),
      serverCount: count(source['serverCount']),
      problemCount: count(source['problemCount']),
      ...(typeof source['hash'] === 'string' && { hash: text200(source['hash']) }),
      message: typeof source['message'] === 'string' ? source['message'].slice(0, 1_000) : '',
    })),
  }
}

function text200(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 200) : ''
}

/** As long as an annotation, which it was, may be. */
function trigger(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_TRIGGER) : ''
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? Math.min(value, 2_147_483_647) : 0
}

function time(name: 'lastAttempt' | 'lastSuccess', value: unknown): { lastAttempt?: string; lastSuccess?: string } {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? { [name]: value } : {}
}

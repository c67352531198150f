import { tmpdir } from 'node:os'
import { systemClock } from '@thv/kernel/clock'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { DEFAULT_FETCH_LIMITS, type FetchContext, type FetchLimits, type FetchResult } from '../fetch/registry-handler.ts'

/** One attempt, as the registry would make it: of servers on this machine, since tests have no others. */
export function testContext(changes: Partial<Omit<FetchContext, 'limits'>> & { limits?: Partial<FetchLimits> } = {}): FetchContext {
  const { limits, ...rest } = changes
  return {
    signal: new AbortController().signal,
    clock: systemClock,
    state: undefined,
    memo: new Map(),
    warn: () => {},
    allowPrivateAddresses: true,
    tempDir: tmpdir(),
    limits: { ...DEFAULT_FETCH_LIMITS, ...limits },
    ...rest,
  }
}

/** `name@version` of all entries. */
export function namesOf(result: FetchResult): string[] {
  return result.kind === 'unchanged' ? [] : result.entries.map(({ name, version }) => `${name}@${version}`)
}

export function documentText(name: string, version = '1.0.0'): string {
  return `{"name":"io.example/${name}","description":"A server","version":"${version}"}`
}

/** `code: message` of the coded error that something must end with. */
export async function failure(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!isThvError(error)) throw new Error('expected a coded error', { cause: error })
  return `${error.code}: ${errorMessage(error)}`
}

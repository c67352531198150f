import { plainCall } from '../local-platform/plain-call.ts'
import type { ServerState } from '../platform/server-states.ts'
import { notedRegistry } from './registry-note.ts'

/** Its name among the states; a server's has its namespace before it if it is not the default one. */
export const REGISTRY = 'the registry'

const ASK_LIMIT_MS = 2_000

/** How far the registry of a data folder is; undefined where there is none. */
export async function registryState(folder: string, signal?: AbortSignal): Promise<ServerState | undefined> {
  const note = notedRegistry(folder)
  if (note === undefined) return undefined
  const name = REGISTRY
  if (await isServing(note.url, signal)) return { name, state: 'ready', url: `${note.url}/registry`, detail: '' }
  if (note.problem !== undefined) return { name, state: 'failing', detail: note.problem }
  return { name, state: 'starting', detail: '(not responding yet)' }
}

async function isServing(url: string, signal?: AbortSignal): Promise<boolean> {
  try {
    const limit = AbortSignal.timeout(ASK_LIMIT_MS)
    const asked = { signal: signal ? AbortSignal.any([signal, limit]) : limit, until: 'head' } as const
    const { status } = await plainCall(`${url}/registry/v0.1/servers?limit=1`, asked)
    // A configuration of the user's own may ask for a token.
    return status === 200 || status === 401
  } catch (error) {
    if (signal?.aborted) throw error
    return false // not listening yet: the caller tries again
  }
}

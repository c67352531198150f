import { METHODS } from '@thv/mcp/methods'
import type { Log } from '@thv/telemetry/log'
import type { BackendLists } from '../aggregate/backend-lists.ts'
import { type ListedItems, listAll } from './list-pages.ts'
import type { Member } from './member.ts'

export type ListKind = 'tools' | 'prompts' | 'resources' | 'resourceTemplates'

export const LIST_KINDS: readonly ListKind[] = ['tools', 'prompts', 'resources', 'resourceTemplates']

const METHOD_OF: Readonly<Record<ListKind, string>> = {
  tools: METHODS.toolsList,
  prompts: METHODS.promptsList,
  resources: METHODS.resourcesList,
  resourceTemplates: METHODS.resourceTemplatesList,
}

/** The capability that a server announces where it has the list. */
const CAPABILITY_OF: Readonly<Record<ListKind, string>> = {
  tools: 'tools',
  prompts: 'prompts',
  resources: 'resources',
  resourceTemplates: 'resources',
}

export interface LoadOptions {
  readonly kinds: readonly ListKind[]
  readonly log: Log
  readonly signal: AbortSignal
}

export interface LoadedLists {
  readonly lists: Partial<BackendLists>
  /** How long the backend says that they may be kept, if it does. */
  readonly ttlMs: number | undefined
}

/** Lists of a backend with the credentials of the caller that is served, or with our own. */
export async function loadLists(member: Member, { kinds, log, signal }: LoadOptions): Promise<LoadedLists> {
  const client = member.shared
  const ttls: number[] = []
  await client.connect({ signal })
  const loaded = await Promise.all(
    kinds.map(async (kind) => {
      // Some servers announce nothing and have tools all the same.
      const { capabilities } = client
      const isAnnounced = CAPABILITY_OF[kind] in capabilities || (kind === 'tools' && Object.keys(capabilities).length === 0)
      const { items, isCut, ttlMs } = isAnnounced ? await listAll(client, METHOD_OF[kind], signal) : NOTHING
      if (ttlMs !== undefined) ttls.push(ttlMs)
      if (isCut) log.warn('a list of a backend is over the limit and was cut', { backend: member.name, list: kind, kept: items.length })
      return [kind, items] as const
    }),
  )
  return { lists: Object.fromEntries(loaded), ttlMs: ttls.length === 0 ? undefined : Math.min(...ttls) }
}

const NOTHING: ListedItems = { items: [], isCut: false, ttlMs: undefined }

export function noLists(backend: string): BackendLists {
  return { backend, tools: [], prompts: [], resources: [], resourceTemplates: [] }
}

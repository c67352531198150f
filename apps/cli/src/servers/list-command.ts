import type { KubeObject } from '@thv/kube/objects/types'
import { type ClusterFlags, withCluster } from '../cluster/open-cluster.ts'
import { SERVER_KINDS } from '../cluster/server-kinds.ts'
import { ageText } from '../objects/age-text.ts'
import { alignedRows } from '../objects/print-table.ts'
import type { ProgramEnv } from '../program.ts'
import { plainText } from '../text/plain-text.ts'

export interface ListOptions extends ClusterFlags {
  readonly allNamespaces?: boolean
  readonly headers: boolean
}

interface ServerCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
}

interface Server extends KubeObject {
  readonly status?: { readonly phase?: string; readonly url?: string; readonly conditions?: readonly ServerCondition[] }
}

/** thv ls: the MCP servers of all kinds in one table. */
export async function runList(options: ListOptions, env: ProgramEnv): Promise<void> {
  await withCluster(options, env, async ({ client, namespace }) => {
    const where = options.allNamespaces ? {} : { namespace }
    const lists = await Promise.all(SERVER_KINDS.map((kind) => client.listAll(kind, { ...where, signal: env.signal })))
    const rows = lists.flatMap(({ items }, index) => items.map((server: Server) => rowOf(server, SERVER_KINDS[index]?.kind ?? '')))
    if (rows.length === 0) {
      env.err(options.allNamespaces ? 'No MCP servers found.\n' : `No MCP servers found in ${namespace} namespace.\n`)
      return
    }
    const shown = [...(options.headers ? [HEADER] : []), ...rows.sort(byNames)]
    env.out(`${alignedRows(options.allNamespaces ? shown : shown.map(([, ...rest]) => rest)).join('\n')}\n`)
  })
}

const HEADER = ['NAMESPACE', 'NAME', 'KIND', 'STATUS', 'REASON', 'URL', 'AGE']

function rowOf({ metadata, status }: Server, kind: string): string[] {
  const age = ageText(Date.now() - Date.parse(metadata.creationTimestamp ?? ''))
  const url = plainText(status?.url).replace(/#.*$/, '')
  const phase = plainText(status?.phase) || '<none>'
  return [metadata.namespace ?? '', metadata.name, kind, phase, reasonOf(status?.conditions), url || '<none>', age]
}

/** Why it is not ready; nothing for a server that is. */
function reasonOf(conditions: readonly ServerCondition[] = []): string {
  const ready = conditions.find(({ type }) => type === 'Ready')
  return ready === undefined || ready.status === 'True' ? '' : plainText(ready.reason)
}

/** Of equal names the kinds keep their order. */
function byNames([spaceA = '', nameA = '']: string[], [spaceB = '', nameB = '']: string[]): number {
  if (spaceA === spaceB && nameA === nameB) return 0
  return spaceA < spaceB || (spaceA === spaceB && nameA < nameB) ? -1 : 1
}

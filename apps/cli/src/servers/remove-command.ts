import { ThvError } from '@thv/kernel/errors'
import { type OpenCluster, withCluster } from '../cluster/open-cluster.ts'
import { SERVER_KINDS } from '../cluster/server-kinds.ts'
import { type DeleteOptions, runDelete } from '../objects/delete-command.ts'
import type { ProgramEnv } from '../program.ts'

export type RemoveOptions = Omit<DeleteOptions, 'filename' | 'selector' | 'all'>

/** thv rm NAME…: deletes MCP servers, whatever their kind. */
export async function runRemove(names: readonly string[], options: RemoveOptions, env: ProgramEnv): Promise<void> {
  const words = await withCluster(options, env, async (cluster) => {
    const found = await Promise.all(names.map((name) => serverOf(name, { ...cluster, env })))
    if (!options.ignoreNotFound) {
      const missing = names.find((_, index) => found[index] === undefined)
      if (missing !== undefined)
        throw new ThvError('usage', `no MCP server ${JSON.stringify(missing)} in namespace ${cluster.namespace}; "thv ls" lists them`)
    }
    return found.filter((word) => word !== undefined)
  })
  if (words.length > 0) await runDelete(words, { ...options, filename: [] }, env)
}

/** As KIND/NAME; undefined when there is none. */
async function serverOf(name: string, { client, namespace, env }: OpenCluster & { env: ProgramEnv }): Promise<string | undefined> {
  if (name.includes('/')) return name
  const objects = await Promise.all(SERVER_KINDS.map((kind) => client.tryGet(kind, { namespace, name }, { signal: env.signal })))
  const words = SERVER_KINDS.filter((_, index) => objects[index] !== undefined).map(({ plural, group }) => `${plural}.${group}/${name}`)
  if (words.length > 1) throw new ThvError('usage', `${JSON.stringify(name)} is ambiguous: choose ${words.join(' or ')}`)
  return words[0]
}

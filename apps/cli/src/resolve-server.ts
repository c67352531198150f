import { isThvError, ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { isForbidden, isNotFound } from '@thv/kube/client/kube-api-error'
import type { StatusCondition } from '@thv/kube/objects/builtin-kinds'
import type { KubeObject, ResourceType } from '@thv/kube/objects/types'
import { type ClusterFlags, withCluster } from './cluster/open-cluster.ts'
import { SERVER_KINDS } from './cluster/server-kinds.ts'
import type { ProgramEnv } from './program.ts'
import { suggestion } from './text/closest.ts'
import { plainText } from './text/plain-text.ts'

const KINDS = SERVER_KINDS as readonly ResourceType<ServerObject>[]

interface ServerObject extends KubeObject {
  readonly status?: { readonly url?: string; readonly phase?: string; readonly message?: string; readonly conditions?: StatusCondition[] }
}

/** The URL behind what the user typed: a URL, or the name of a server of the platform, also as NAMESPACE/NAME. */
export async function resolveServer(nameOrUrl: string, flags: ClusterFlags, env: ProgramEnv): Promise<string> {
  if (nameOrUrl.includes('://')) return checkedUrl(nameOrUrl)
  if (/^[\w.-]+:\d+(\/|$)/.test(nameOrUrl))
    throw usage(`${JSON.stringify(nameOrUrl)} is no name; if it is a URL, write http://${nameOrUrl}`)
  const [first = '', second, ...rest] = nameOrUrl.split('/')
  if (first === '' || second === '' || rest.length > 0)
    throw usage(`${JSON.stringify(nameOrUrl)} is neither a URL, nor NAME, nor NAMESPACE/NAME`)
  try {
    return await withCluster(second === undefined ? flags : { ...flags, namespace: first }, env, async ({ client, namespace }) => {
      const name = second ?? first
      const found = await lookUp(client, { namespace, name })
      return found ? urlOf(found) : await elsewhere(client, { name, namespace, mayBeElsewhere: second === undefined })
    })
  } catch (error) {
    if (isThvError(error, 'kubeconfig_invalid') || isThvError(error, 'kube_unreachable'))
      throw new ThvError(error.code, `${JSON.stringify(nameOrUrl)} cannot be looked up: ${error.message} (a URL works without a platform)`)
    throw error
  }
}

async function lookUp(client: KubeClient, key: { namespace: string; name: string }): Promise<ServerObject | undefined> {
  const found = await Promise.all(KINDS.map((kind) => client.tryGet(kind, key)))
  return found.find((object) => object !== undefined)
}

/** A name that is not in the user's namespace, but in just one other, is what was meant. */
async function elsewhere(
  client: KubeClient,
  { name, namespace, mayBeElsewhere }: { name: string; namespace: string; mayBeElsewhere: boolean },
): Promise<string> {
  const all = (await Promise.all(KINDS.map((kind) => listed(client, kind)))).flat()
  const same = mayBeElsewhere ? all.filter((object) => object.metadata.name === name) : []
  if (same.length === 1 && same[0]) return urlOf(same[0])
  const shown = (object: ServerObject) => fullName(object, namespace)
  if (same.length > 1) throw usage(`there are several servers ${JSON.stringify(name)}: say ${same.map(shown).join(' or ')}`)
  if (all.length === 0) throw usage(`there is no server ${JSON.stringify(name)}, and no other: declare one with "thv apply -f FILE"`)
  const names = all.map(shown)
  const list = names.length > MAX_LISTED ? `${names.slice(0, MAX_LISTED).join(', ')} …` : names.join(', ')
  throw usage(`there is no server ${JSON.stringify(name)}.${suggestion(name, names)} There are: ${list}`)
}

const MAX_LISTED = 12

async function listed(client: KubeClient, kind: ResourceType<ServerObject>): Promise<ServerObject[]> {
  try {
    return (await client.listAll(kind)).items
  } catch (error) {
    if (isForbidden(error) || isNotFound(error)) return [] // only for suggestions
    throw error
  }
}

function urlOf(object: ServerObject): string {
  const { url, phase = 'Pending', message, conditions = [] } = object.status ?? {}
  const ready = conditions.find(({ type }) => type === 'Ready')
  if (url && phase !== 'Failed' && (ready === undefined || ready.status === 'True')) return url.replace(/#.*$/, '')
  const why = plainText(message || ready?.message) || 'it was declared a moment ago'
  const { namespace, name } = object.metadata
  throw new ThvError(
    'backend_refused',
    `${object.kind} ${namespace}/${name} is ${phase}: ${why} ("thv describe ${object.kind?.toLowerCase()} ${name}" has details)`,
  )
}

function fullName({ metadata }: ServerObject, namespace: string): string {
  return metadata.namespace === namespace ? metadata.name : `${metadata.namespace}/${metadata.name}`
}

function checkedUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) throw usage(`${JSON.stringify(text)} is not a URL`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw usage(`only http and https URLs can be called, not ${url.protocol}`)
  if (url.username !== '' || url.password !== '') throw usage('a URL must not carry a user name or password: use --header')
  return text
}

function usage(message: string): ThvError {
  return new ThvError('usage', message)
}

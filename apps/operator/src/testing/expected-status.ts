import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { KINDS } from '@thv/resources/kinds/kinds'
import { type Manifest, manifestsIn } from '@thv/resources/testing/fixtures'
import { parse, stringify } from 'yaml'
import { COMPANY_CA } from './fixture-namespace.ts'

/*
 * Beside each file of manifests stands one with the ending `.status`: what must be in the namespace (`given`) and the status that its
 * objects then reach. kubectl passes over that ending when it is given a whole folder.
 */

const ROOT = new URL('../../../../', import.meta.url)
const FOLDERS = ['deploy/examples/operator/', 'deploy/examples/quickstart/', 'test/fixtures/seeds/', 'test/fixtures/resources/']

/** Those that this operator gives a status. */
export const RECONCILED = KINDS.map(({ kind }) => kind)

/** Files whose registries the operator fetches from hosts that do not exist: their state would be that of the network. */
const FETCHED: ReadonlySet<string> = new Set([
  'deploy/examples/operator/mcp-registries/git-source',
  'test/fixtures/resources/mcpregistries/source',
  'test/fixtures/seeds/002-mcpregistry-sync-policy',
])

export interface ManifestFile {
  /** From the root of the repository, without its ending. */
  readonly name: string
  readonly manifests: readonly Manifest[]
  readonly given: readonly Manifest[]
  /** Path of the file with the status. */
  readonly statusPath: string
  /** Its content. */
  readonly expected: string
}

/** Every file with at least one object that the operator reconciles. */
export function manifestFiles(): ManifestFile[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.yaml'))
      .map((file) => `${folder}${file.slice(0, -'.yaml'.length)}`)
      .filter((name) => !FETCHED.has(name))
      .toSorted()
      .map(read)
      .filter(({ manifests }) => manifests.some(({ kind }) => RECONCILED.includes(kind))),
  )
}

type Given = Readonly<Record<string, unknown>>

function read(name: string): ManifestFile {
  const statusPath = fileURLToPath(new URL(`${name}.status`, ROOT))
  const manifests = manifestsIn(readFileSync(new URL(`${name}.yaml`, ROOT), 'utf8'))
  if (!manifests.some(({ kind }) => RECONCILED.includes(kind))) return { name, manifests, given: [], statusPath, expected: '' }
  const expected = readFileSync(statusPath, 'utf8')
  const { given } = parse(expected) as { given: Given }
  return { name, manifests, given: Object.entries(given).map(givenObject), statusPath, expected }
}

/** `Secret/NAME` with its keys, `ConfigMap/NAME` with its data, or one of our kinds with its spec. */
function givenObject([id, content]: [string, unknown]): Manifest {
  const [kind = '', name = ''] = id.split('/')
  const metadata = { name }
  if (kind === 'Secret') {
    const stringData = Object.fromEntries((content as string[]).map((key) => [key, 'value']))
    return { apiVersion: 'v1', kind, metadata, stringData } as Manifest
  }
  if (kind === 'ConfigMap') {
    const data = Object.fromEntries(
      Object.entries(content as Record<string, string>).map(([key, text]) => [key, text === 'COMPANY_CA' ? COMPANY_CA : text]),
    )
    return { apiVersion: 'v1', kind, metadata, data } as Manifest
  }
  return { apiVersion: 'toolhive.stacklok.dev/v1beta1', kind, metadata, spec: content }
}

/** The text of the file if the objects have these statuses. */
export function statusText({ expected }: ManifestFile, reaches: Readonly<Record<string, unknown>>): string {
  const { given } = parse(expected) as { given: Given }
  return stringify({ given, reaches }, { lineWidth: 0 })
}

interface Status {
  conditions?: { type: string; status: string; reason: string }[]
  [member: string]: unknown
}

/** Without what differs from run to run, and without texts: those may be written better at any time. */
export function stableStatus({ replicas, ...status }: Status, namespace: string): Record<string, unknown> {
  const { conditions = [], message: _, observedGeneration: __, selector: ___, ...rest } = status
  // Pods of an earlier rollout of a virtual server wait beside those of the newest, since no node takes them.
  const isVirtual = String(rest['url']).startsWith('http://vmcp-')
  const members = Object.entries({ ...rest, ...(replicas !== undefined && !isVirtual && { replicas }) })
    .filter(([member]) => !member.endsWith('Hash'))
    .map(([member, value]) => [member, STEADY[member]?.(value as Record<string, unknown>) ?? value] as const)
    .toSorted(byName)
  const told = conditions.map(({ type, status: is, reason }) => [type, `${is} ${reason}`] as const)
  return {
    ...Object.fromEntries(members.map(([member, value]) => [member, withoutNamespace(value, namespace)])),
    conditions: Object.fromEntries(told.toSorted(byName)),
  }
}

/** Parts of an MCPRegistry's status that hold no time, count of attempts or text. */
const STEADY: Readonly<Record<string, (value: Record<string, unknown>) => unknown>> = {
  syncStatus: ({ phase, serverCount }) => ({ phase, serverCount }),
  apiStatus: ({ phase }) => ({ phase }),
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

function withoutNamespace(value: unknown, namespace: string): unknown {
  if (typeof value === 'string') return value.replaceAll(namespace, 'NAMESPACE')
  if (Array.isArray(value)) return value.map((item: unknown) => withoutNamespace(item, namespace))
  if (typeof value !== 'object' || value === null) return value
  // API servers differ in the order of members.
  const members = Object.entries(value).toSorted(byName)
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNamespace(member, namespace)]))
}

/** Puts the files into as few namespaces as can be without two objects of one name; the kinds that make a Deployment of their name share theirs. */
export function sharedOut(files: readonly ManifestFile[]): ManifestFile[][] {
  const places: { names: Set<string>; files: ManifestFile[] }[] = []
  for (const file of files) {
    const names = [...file.given, ...file.manifests].map(({ kind, metadata }) => `${WORKLOADS.includes(kind) ? '' : kind}/${metadata.name}`)
    let place = places.find((each) => names.every((name) => !each.names.has(name)))
    if (place === undefined) {
      place = { names: new Set(), files: [] }
      places.push(place)
    }
    place.files.push(file)
    for (const name of names) place.names.add(name)
  }
  return places.map((place) => place.files)
}

const WORKLOADS = ['MCPServer', 'MCPRemoteProxy', 'VirtualMCPServer']

/** Path of the collection that an object is created in, by the version that it is written in. */
export function collectionOf({ apiVersion, kind }: Manifest, namespace: string): string {
  const plural = KINDS.find((definition) => definition.kind === kind)?.plural ?? `${kind.toLowerCase()}s`
  return `/${apiVersion === 'v1' ? 'api' : 'apis'}/${apiVersion}/namespaces/${namespace}/${plural}`
}

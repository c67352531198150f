import {
  configMaps,
  deployments,
  type KubeObject,
  networkPolicies,
  type ResourceType,
  roleBindings,
  roles,
  serviceAccounts,
  services,
  statefulSets,
} from '@thv/kube'
import { type MCPGroup, mcpGroupType } from '@thv/resources/kinds/mcp-group/schema'
import type { Manifest } from '@thv/resources/testing/fixtures'
import { describeCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  collectionOf,
  type ManifestFile,
  manifestFiles,
  RECONCILED,
  sharedOut,
  stableStatus,
  statusText,
} from './testing/expected-status.ts'
import { eventually, type OperatorUnderTest, startOperator } from './testing/operator-harness.ts'
import { standstill } from './testing/standstill.ts'

/*
 * Every example, every manifest of the design documents and every fixture of the kinds reaches the status that the file beside it states.
 * No node runs pods here, so what is all right stays Pending.
 */

/** File → requirements that it proves by reaching its status. */
const PROVES: Readonly<Record<string, readonly string[]>> = { 'test/fixtures/resources/mcpgroups/group': ['[002-119]'] }
const REACHED_WITHIN_MS = 180_000
const CHILD_TYPES: readonly ResourceType<KubeObject>[] = [
  configMaps,
  deployments,
  networkPolicies,
  roleBindings,
  roles,
  serviceAccounts,
  services,
]
const PLACES = sharedOut(manifestFiles())
const FILES = PLACES.flatMap((files, place) =>
  files.map((file) => ({ name: [file.name, ...(PROVES[file.name] ?? [])].join(' '), file, place })),
)

describeCluster('the status that manifests reach', () => {
  let operator: OperatorUnderTest
  let namespaces: string[]
  /** For all together: they run at the same time. */
  let deadline: number

  beforeAll(async () => {
    namespaces = await Promise.all(PLACES.map(async () => await testNamespace('status')))
    operator = await startOperator({ namespace: namespaces[0] ?? '', env: { WATCH_NAMESPACE: namespaces.join(',') } })
    await Promise.all(PLACES.map(async (files, place) => await createAll(files, namespaces[place] ?? '')))
    deadline = performance.now() + REACHED_WITHIN_MS
  })
  afterAll(async () => await operator?.stop())

  async function createAll(files: readonly ManifestFile[], namespace: string): Promise<void> {
    for (const file of files) for (const object of [...file.given, ...file.manifests]) await create(object, namespace)
  }

  async function create(object: Manifest, namespace: string): Promise<void> {
    const body = { ...object, metadata: { ...object.metadata, namespace } }
    await operator.admin.raw('POST', collectionOf(object, namespace), { body })
  }

  async function reached(file: ManifestFile, namespace: string): Promise<{ text: string; isSettled: boolean }> {
    const objects = await Promise.all(
      file.manifests
        .filter(({ kind }) => RECONCILED.includes(kind))
        .map(async (manifest) => {
          const answer = await operator.admin.raw('GET', `${collectionOf(manifest, namespace)}/${manifest.metadata.name}`)
          const { metadata, status = {} } = answer.json() as KubeObject & { status?: { observedGeneration?: number } }
          return { id: `${manifest.kind}/${manifest.metadata.name}`, metadata, status }
        }),
    )
    return {
      text: statusText(file, Object.fromEntries(objects.map(({ id, status }) => [id, stableStatus(status, namespace)]))),
      isSettled: objects.every(({ metadata, status }) => status.observedGeneration === metadata.generation),
    }
  }

  // Not `$name`, which vitest cuts at 40 characters.
  it.each(FILES.map((each) => [each.name, each] as const))('%s', async (_name, { file, place }) => {
    const namespace = namespaces[place] ?? ''
    const isReached = async () => {
      const { text, isSettled } = await reached(file, namespace)
      return isSettled && text === file.expected
    }
    const left = Math.max(1_000, deadline - performance.now())
    await eventually(file.name, isReached, left).catch(() => undefined) // the next line shows what differs
    await expect((await reached(file, namespace)).text).toMatchFileSnapshot(file.statusPath)
  })

  it('leaves the StatefulSet to the runner, and all pods to those who make them [002-015]', async () => {
    for (const namespace of namespaces) expect((await operator.admin.list(statefulSets, { namespace })).items).toEqual([])
    expect(operator.calls.all.filter(({ plural }) => plural === 'statefulsets' || plural === 'pods')).toEqual([])
  })

  it('groups, configurations, definitions and entries have no children [002-032]', async () => {
    await standstill({ ...operator, namespaces })
    const owners = new Set<string>()
    for (const namespace of namespaces) {
      for (const type of CHILD_TYPES) {
        const { items } = await operator.admin.list(type, { namespace })
        for (const { metadata } of items)
          for (const { apiVersion, kind } of metadata.ownerReferences ?? []) owners.add(`${apiVersion} ${kind}`)
      }
    }
    const version = 'toolhive.stacklok.dev/v1beta1'
    expect([...owners].filter((owner) => owner.startsWith('toolhive')).toSorted()).toEqual([
      `${version} MCPRegistry`,
      `${version} MCPRemoteProxy`,
      `${version} MCPServer`,
      `${version} VirtualMCPServer`,
    ])
  })

  it('every kind has a controller that writes its status [002-003]', async () => {
    const told = new Set<string>()
    for (const { file, place } of FILES)
      for (const manifest of file.manifests) {
        const answer = await operator.admin.raw('GET', `${collectionOf(manifest, namespaces[place] ?? '')}/${manifest.metadata.name}`)
        const { status } = answer.json() as { status?: { conditions?: unknown[] } }
        if ((status?.conditions ?? []).length > 0) told.add(manifest.kind)
      }
    expect(RECONCILED.filter((kind) => !told.has(kind))).toEqual([])
  })

  it('a proxy has one replica and a Service inside the cluster unless its spec says otherwise [002-216] [002-217]', async () => {
    const namespace = namespaceOf('deploy/examples/operator/mcp-servers/mcpserver_fetch_tools_filter')
    expect((await operator.admin.get(deployments, { namespace, name: 'fetch' })).spec?.replicas).toBe(1)
    expect((await operator.admin.get(services, { namespace, name: 'mcp-fetch-proxy' })).spec?.type).toBe('ClusterIP')
    const told = namespaceOf('test/fixtures/resources/mcpservers/pods')
    expect((await operator.admin.get(deployments, { namespace: told, name: 'several-proxies' })).spec?.replicas).toBe(2)
    expect((await operator.admin.get(services, { namespace: told, name: 'mcp-offline-proxy' })).spec?.type).toBe('NodePort')
  })

  it('a group finds its entries in either spelling [004-102]', async () => {
    const namespace = namespaceOf('test/fixtures/resources/mcpserverentries/entries')
    const { status } = await operator.admin.get(mcpGroupType as ResourceType<MCPGroup>, { namespace, name: 'plant' })
    // The one names it as an object, the other by its bare name.
    expect(status?.serverEntries).toEqual(['plant-sensors', 'static-authorization'])
  })

  function namespaceOf(file: string): string {
    return namespaces[FILES.find((each) => each.file.name === file)?.place ?? -1] ?? ''
  }

  it('stays', async () => {
    await standstill({ ...operator, namespaces })
    operator.calls.clear()
    for (const { file, place } of FILES)
      for (const { metadata } of file.manifests)
        for (const controller of operator.manager.controllers)
          controller.enqueue({ namespace: namespaces[place] ?? '', name: metadata.name })
    await standstill({ ...operator, namespaces })
    expect(operator.calls.writes).toEqual([])
    for (const { file, place } of FILES) expect((await reached(file, namespaces[place] ?? '')).text).toBe(file.expected)
  })
})

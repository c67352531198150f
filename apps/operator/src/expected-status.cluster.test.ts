import type { KubeObject } from '@thv/kube'
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

/*
 * Every example, every manifest of the design documents and every fixture of the kinds reaches the status that the file beside it states.
 * No node runs pods here, so what is all right stays Pending.
 */

const REACHED_WITHIN_MS = 60_000
const PLACES = sharedOut(manifestFiles())
const FILES = PLACES.flatMap((files, place) => files.map((file) => ({ name: file.name, file, place })))

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
  }, 120_000)
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

  it.each(FILES)('$name', async ({ file, place }) => {
    const namespace = namespaces[place] ?? ''
    const isReached = async () => {
      const { text, isSettled } = await reached(file, namespace)
      return isSettled && text === file.expected
    }
    const left = Math.max(1_000, deadline - performance.now())
    await eventually(file.name, isReached, left).catch(() => undefined) // the next line shows what differs
    await expect((await reached(file, namespace)).text).toMatchFileSnapshot(file.statusPath)
  })

  it('stays', async () => {
    operator.calls.clear()
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    expect(operator.calls.writes).toEqual([])
    for (const { file, place } of FILES) expect((await reached(file, namespaces[place] ?? '')).text).toBe(file.expected)
  })
})

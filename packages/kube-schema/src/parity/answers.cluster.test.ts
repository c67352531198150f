import { readdirSync, readFileSync } from 'node:fs'
import { apiRequest } from '@thv/testkit/cluster/http-request'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { REJECTIONS } from '../../../../test/fixtures/resources/rejections.ts'
import type { JsonObject } from '../kind-schema.ts'
import { ODD_ROOT, ODD_SCHEMAS, ODD_SPECS, ODD_UPDATES, oddCrd } from './odd-crds.ts'

/*
 * Answers of the real server to odd CRDs, odd objects and the bad manifests of packages/resources; `answers.test.ts`
 * compares ours. Written by `vitest run --project cluster <this file> -u`.
 */

const AT_ONCE = 8
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const FOLDER = new URL('../../../../deploy/crds/', import.meta.url)

interface Cause {
  readonly reason?: string
  readonly field?: string
  readonly message?: string
}

describeCluster('answers to schemas', () => {
  let namespace: string

  beforeAll(async () => {
    namespace = await testNamespace('schemas')
  })

  it('odd CRDs', async () => {
    const answers: Record<string, unknown> = {}
    for (const [name, root] of Object.entries(ODD_SCHEMAS)) {
      answers[name] = await answerTo(`${CRDS}?dryRun=All`, 'POST', oddCrd('refuseds', root))
    }
    await expect(oneLineEach(answers)).toMatchFileSnapshot('../../recordings/parity/crds.golden.json')
  })

  it('odd objects', async () => {
    await apiRequest(sharedCluster(), CRDS, { method: 'POST', body: oddCrd('odds', ODD_ROOT) })
    const base = `/apis/odd.example.com/v1/namespaces/${namespace}/odds`
    await expect.poll(async () => (await apiRequest(sharedCluster(), base)).status, { timeout: 30_000 }).toBe(200)
    const answers: Record<string, unknown> = {}
    const object = (name: string, spec: JsonObject) => ({ apiVersion: 'odd.example.com/v1', kind: 'Odds', metadata: { name }, spec })
    for (const spec of ODD_SPECS)
      answers[JSON.stringify(spec)] = await answerTo(`${base}?dryRun=All&fieldValidation=Ignore`, 'POST', object('odd', spec))
    for (const [index, [old, next]] of ODD_UPDATES.entries()) {
      const stored = await apiRequest(sharedCluster(), base, { method: 'POST', body: object(`odd-${index}`, old) })
      const { metadata } = stored.json<{ metadata: { resourceVersion: string } }>()
      const body = { ...object(`odd-${index}`, next), metadata: { name: `odd-${index}`, resourceVersion: metadata.resourceVersion } }
      answers[JSON.stringify([old, next])] = await answerTo(`${base}/odd-${index}?dryRun=All`, 'PUT', body)
    }
    await expect(oneLineEach(answers)).toMatchFileSnapshot('../../recordings/parity/objects.golden.json')
  })

  it('bad manifests', async () => {
    const answers: Record<string, unknown> = {}
    for (const file of readdirSync(FOLDER)) {
      const crd = parse(readFileSync(new URL(file, FOLDER), 'utf8')) as {
        metadata: { name: string }
        spec: { names: { kind: string; plural: string } }
      }
      const { kind, plural } = crd.spec.names
      await apiRequest(sharedCluster(), `${CRDS}/${crd.metadata.name}?fieldManager=test&force=true`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/apply-patch+yaml' },
        body: crd,
      })
      const base = `/apis/toolhive.stacklok.dev/v1beta1/namespaces/${namespace}/${plural}`
      await expect.poll(async () => (await apiRequest(sharedCluster(), base)).status, { timeout: 30_000 }).toBe(200)
      const rows = REJECTIONS[kind] ?? []
      const ask = async (row: (typeof rows)[number]) => {
        const body = { apiVersion: 'toolhive.stacklok.dev/v1beta1', kind, metadata: { name: row.name ?? 'bad' }, spec: row.spec }
        return await answerTo(`${base}?dryRun=All&fieldValidation=Strict`, 'POST', body)
      }
      for (let at = 0; at < rows.length; at += AT_ONCE) {
        const some = rows.slice(at, at + AT_ONCE)
        const given = await Promise.all(some.map(ask))
        for (const [index, row] of some.entries()) answers[`${kind}: ${row.title}`] = given[index]
      }
    }
    await expect(oneLineEach(answers)).toMatchFileSnapshot('../../recordings/parity/manifests.golden.json')
  })

  async function answerTo(path: string, method: string, body: object): Promise<unknown> {
    const { status, text } = await apiRequest(sharedCluster(), path, { method, body })
    const answer = JSON.parse(text) as { spec?: unknown; message?: string; details?: { causes?: readonly Cause[] } }
    if (status < 300) return path.startsWith(CRDS) ? { status } : { status, spec: answer.spec }
    if (status !== 422) return { status, message: answer.message?.replaceAll(namespace, 'schemas') }
    return { status, causes: (answer.details?.causes ?? []).toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) }
  }
})

/** Readable in a diff. */
function oneLineEach(answers: Record<string, unknown>): string {
  const lines = Object.entries(answers).map(([name, answer]) => `${JSON.stringify(name)}: ${JSON.stringify(answer)}`)
  return `{\n${lines.join(',\n')}\n}\n`
}

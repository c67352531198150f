import { request } from 'node:https'
import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { apiRequest } from '@thv/testkit/cluster/http-request'
import { versions } from '@thv/testkit/cluster/programs/kubernetes-version'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { beforeAll, expect, it } from 'vitest'
import { textAt } from '../../apiserver/objects/served-kind.ts'
import { decodeKind } from './decode-message.ts'
import { generateMessageTable, sourceFolders } from './generate-message-table.ts'
import { readEnvelope } from './read-envelope.ts'
import { OBJECTS, type SentObject } from './testing/objects.ts'

/* `vitest run --project cluster <this file> -u` writes the table again after a new version of Kubernetes. */

describeCluster('the table of protobuf messages', () => {
  let namespace: string
  beforeAll(async () => {
    namespace = await testNamespace('protobuf')
  })

  it.each(OBJECTS)('reads $kind $metadata.name as the real server writes it', async (object) => {
    const { path: place, ...body } = JSON.parse(JSON.stringify(object).replaceAll('{ns}', namespace)) as SentObject
    const path = `${place}/${body.metadata.name}`
    const made = await apiRequest(sharedCluster(), place, { method: 'POST', body })
    expect([made.status, made.text]).toEqual([201, expect.any(String)])
    const { decoded, json } = await bothForms(path)
    expect(decoded).toEqual(withoutNulls(json))
    if (!place.includes(namespace)) await apiRequest(sharedCluster(), path, { method: 'DELETE' })
  })

  // Go's module cache has the sources where the binaries were built; elsewhere the comparison above must do.
  const folders = sourceFolders(versions.staging)
  if (folders !== undefined)
    it('is made of the sources', async () => {
      await expect(generateMessageTable(folders)).toMatchFileSnapshot('./message-table.generated.json')
    })
})

/** Of the same version: controllers may write meanwhile. */
async function bothForms(path: string): Promise<{ decoded: JsonObject; json: JsonObject }> {
  for (let tries = 0; ; tries++) {
    const { apiVersion, kind, raw } = readEnvelope(await getBytes(path))
    const decoded = { apiVersion, kind, ...decodeKind(apiVersion, kind, raw) }
    const json = (await apiRequest(sharedCluster(), path)).json<JsonObject>()
    const isSame = textAt(decoded, 'metadata', 'resourceVersion') === textAt(json, 'metadata', 'resourceVersion')
    if (isSame || tries === 20) return { decoded, json }
  }
}

function getBytes(path: string): Promise<Buffer> {
  const { url, caPem, adminToken } = sharedCluster()
  const headers = { authorization: `Bearer ${adminToken}`, accept: 'application/vnd.kubernetes.protobuf' }
  return new Promise((resolve, reject) => {
    const call = request(`${url}${path}`, { ca: caPem, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve(Buffer.concat(chunks)))
      response.on('error', reject)
    })
    call.on('error', reject)
    call.end()
  })
}

/** Go writes null for a time or a list that is not set. */
function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([, member]) => member !== null)
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNulls(member)]))
}

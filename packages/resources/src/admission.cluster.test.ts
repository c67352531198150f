import type { KubeClient, ResourceType } from '@thv/kube'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Rejection } from '../../../test/fixtures/resources/rejection.ts'
import { REJECTIONS } from '../../../test/fixtures/resources/rejections.ts'
import { KINDS } from './kinds/kinds.ts'
import { API_GROUP, type KindDefinition } from './schema/kind-definition.ts'
import { fixturesOf } from './testing/fixtures.ts'
import { adminClient, installCrds } from './testing/install-crds.ts'

/* Answers of the real API server to good and to bad manifests. Over HTTP: kubectl takes seconds a call. */

describeCluster('admission', () => {
  let client: KubeClient
  let namespace: string
  const warnings: string[] = []

  beforeAll(async () => {
    client = adminClient(sharedCluster(), { onWarning: (text) => warnings.push(text) })
    await installCrds(client)
    namespace = await testNamespace('admission')
  })
  afterAll(() => client.close())

  const typeOf = (definition: KindDefinition, version = 'v1beta1'): ResourceType => ({
    group: API_GROUP,
    version,
    kind: definition.kind,
    plural: definition.plural,
    namespaced: true,
  })

  /** The answer to a create that is not carried out: undefined when accepted, else the server's whole message. */
  async function refusal(
    definition: KindDefinition,
    manifest: object,
    fieldValidation: 'Strict' | 'Ignore' = 'Strict',
  ): Promise<string | undefined> {
    try {
      const version = (manifest as { apiVersion?: string }).apiVersion?.split('/')[1] ?? 'v1beta1'
      await client.create(typeOf(definition, version), manifest as never, { dryRun: true, fieldValidation })
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  }

  function manifestOf(definition: KindDefinition, { name, spec }: Pick<Rejection, 'name' | 'spec'>) {
    return {
      apiVersion: `${API_GROUP}/v1beta1`,
      kind: definition.kind,
      metadata: { name: name ?? 'bad', namespace },
      ...(spec !== undefined && { spec }),
    }
  }

  describe.each(KINDS.map((definition) => [definition.kind, definition] as const))('%s', (kind, definition) => {
    const accepted = fixturesOf(definition.plural).filter(({ manifest }) => manifest.kind === kind)
    it.each(accepted.map(({ file, manifest }) => [`${file}: ${manifest.metadata.name}`, manifest] as const))(
      'accepts %s',
      async (_title, manifest) => {
        warnings.length = 0
        expect(await refusal(definition, { ...manifest, metadata: { ...manifest.metadata, namespace } })).toBeUndefined()
        expect(warnings).toEqual([])
      },
    )

    const rejections = REJECTIONS[kind] ?? []
    it.each(rejections.map((row) => [row.title, row] as const))('refuses: %s', async (_title, row) => {
      const message = await refusal(definition, manifestOf(definition, row))
      expect(message).toContain(row.field)
      expect(message).toContain(row.says)
    })

    it('has at least three bad manifests to refuse', () => expect(rejections.length).toBeGreaterThanOrEqual(3))

    it('refuses an annotation of 1 MiB', async () => {
      const good = accepted[0]?.manifest
      const manifest = { ...good, metadata: { name: 'huge', namespace, annotations: { note: 'x'.repeat(1 << 20) } } }
      expect(await refusal(definition, manifest)).toContain('metadata.annotations: Too long: may not be more than 262144 bytes')
    })

    it('prunes an unknown field for a client that asks for leniency, and names it to all others', async () => {
      const good = accepted[0]?.manifest
      const manifest = { ...good, metadata: { name: 'pruned', namespace }, spec: { ...(good?.spec as object), bogus: 1 } }
      expect(await refusal(definition, manifest)).toContain('unknown field "spec.bogus"')
      const stored = await client.create(typeOf(definition), { ...manifest, apiVersion: `${API_GROUP}/v1beta1` } as never, {
        dryRun: true,
        fieldValidation: 'Ignore',
      })
      expect(JSON.stringify(stored)).not.toContain('bogus')
    })

    it('reads in one version what was written in the other', async () => {
      const good = accepted[0]?.manifest
      const written = {
        ...good,
        apiVersion: `${API_GROUP}/v1alpha1`,
        metadata: { name: `both-${definition.plural}`.slice(0, 40), namespace },
      }
      await client.create(typeOf(definition, 'v1alpha1'), written as never, { fieldValidation: 'Strict' })
      const read = (await client.get(typeOf(definition, 'v1beta1'), { namespace, name: written.metadata.name })) as unknown as {
        apiVersion: string
        spec: unknown
      }
      const readOld = (await client.get(typeOf(definition, 'v1alpha1'), { namespace, name: written.metadata.name })) as unknown as {
        spec: unknown
      }
      expect(read.apiVersion).toBe(`${API_GROUP}/v1beta1`)
      expect(read.spec).toEqual(readOld.spec)
    })
  })

  it('has at least 80 bad manifests in all', () => {
    expect(Object.values(REJECTIONS).flat().length).toBeGreaterThanOrEqual(80)
  })
})

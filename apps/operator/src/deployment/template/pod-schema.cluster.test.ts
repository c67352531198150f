import { bearerToken, createKubeClient, type KubeClient } from '@thv/kube'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MERGE_BASE, MERGE_CASES } from '../testing/merge-cases.ts'
import { GOOD_TEMPLATES, REFUSED_TEMPLATES } from '../testing/template-cases.ts'
import { type FieldType, fieldsOf } from './pod-schema.ts'
import { podTemplateProblems } from './pod-template-spec.ts'
import { strategicMerge } from './strategic-merge.ts'

type Value = Record<string, unknown>

/** The published schema of a field. */
interface Published {
  readonly type?: string
  readonly format?: string
  readonly items?: Published
  readonly additionalProperties?: Published
  readonly allOf?: readonly { readonly $ref: string }[]
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Published>>
  readonly required?: readonly string[]
  readonly 'x-kubernetes-patch-merge-key'?: string
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
}

describeCluster('the table of pod fields on the API server', () => {
  let client: KubeClient
  let namespace: string
  let schemas: Readonly<Record<string, Published>>

  beforeAll(async () => {
    const { url, caPem, adminToken } = sharedCluster()
    client = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(adminToken) })
    namespace = await testNamespace('pod-schema')
    const answer = await client.raw('GET', '/openapi/v3/apis/apps/v1', { timeoutMs: 30_000 })
    schemas = (answer.json() as { components: { schemas: Record<string, Published> } }).components.schemas
  })
  afterAll(() => client?.close())

  const path = () => `/apis/apps/v1/namespaces/${namespace}/deployments`
  const deployment = (template: unknown) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'demo', namespace },
    spec: { selector: { matchLabels: { app: 'demo' } }, template },
  })

  /** The stored template, or the message of the refusal. */
  async function attempt(template: unknown): Promise<{ template?: unknown; refusal?: string }> {
    try {
      const answer = await client.raw('POST', path(), {
        body: deployment(template),
        query: { dryRun: 'All', fieldValidation: 'Strict' },
      })
      return { template: (answer.json() as { spec: { template: unknown } }).spec.template }
    } catch (error) {
      return { refusal: error instanceof Error ? error.message : String(error) }
    }
  }

  test('it says what the server publishes, field by field', () => {
    const differences: string[] = []
    const seen = new Set<string>()
    const walk = (type: string, schemaName: string) => {
      const [fields, schema] = [fieldsOf(type), schemas[schemaName]]
      if (fields === undefined || seen.has(`${type}/${schemaName}`)) return
      seen.add(`${type}/${schemaName}`)
      for (const name of Object.keys(schema?.properties ?? {})) {
        if (!fields.has(name) && !LEFT_OUT.has(`${type}.${name}`) && type !== 'TemplateMeta') differences.push(`${type}.${name} is missing`)
      }
      for (const [name, field] of fields) {
        const published = schema?.properties?.[name]
        if (published === undefined) differences.push(`${type}.${name} does not exist`)
        else {
          const wrong = difference(field, published, schema?.required?.includes(name) === true)
          if (wrong !== undefined && type !== 'TemplateMeta') differences.push(`${type}.${name}: ${wrong}`)
          const next = refOf(published) ?? refOf(published.items)
          if (next !== undefined) walk(field.type, next)
        }
      }
    }
    walk('PodTemplateSpec', 'io.k8s.api.core.v1.PodTemplateSpec')
    expect(differences).toEqual([])
    expect(seen.size).toBeGreaterThan(60)
  })

  test('finds wrong types and unknown fields wherever the server does', async () => {
    const disagreements: string[] = []
    let tried = 0
    for (const { at, template } of wrongTemplates()) {
      tried++
      const [{ refusal }, problems] = [await attempt(template), podTemplateProblems(template, { at: '' })]
      if (refusal === undefined) disagreements.push(`${at}: the server takes it`)
      if (!problems.some((problem) => problem.path.startsWith(at.replace(/^/, '.'))))
        disagreements.push(`${at}: not told (${JSON.stringify(problems)})`)
    }
    expect(disagreements).toEqual([])
    expect(tried).toBeGreaterThan(300)
  })

  test.each(GOOD_TEMPLATES)('the server takes $name, and so do we', async ({ template }) => {
    expect(await attempt(template)).not.toHaveProperty('refusal')
    expect(podTemplateProblems(template)).toEqual([])
  })

  test.each(REFUSED_TEMPLATES)('the server refuses $name, and we say where', async ({ template, path: where }) => {
    expect((await attempt(template)).refusal).toBeDefined()
    expect(podTemplateProblems(template, { at: '' }).map((problem) => problem.path)).toContain(where)
  })

  test.each(MERGE_CASES)('merging is what the server does: $name', async ({ patch }) => {
    const name = `merge-${Math.random().toString(36).slice(2)}`
    const base = deployment(MERGE_BASE)
    await client.raw('POST', path(), { body: { ...base, metadata: { name, namespace } } })
    expect(podTemplateProblems(patch, { patch: true })).toEqual([])
    const patched = await client.raw('PATCH', `${path()}/${name}`, {
      body: { spec: { template: patch } },
      contentType: 'application/strategic-merge-patch+json',
      query: { dryRun: 'All' },
    })
    const { template } = (patched.json() as { spec: { template: Value } }).spec
    const ours = await attempt(strategicMerge(MERGE_BASE, patch, 'PodTemplateSpec'))
    expect(ours).toEqual({ template })
  })

  /** For each field of the table: a pod template with a value of the wrong type there, and for each type one with an unknown field. */
  function* wrongTemplates(): Generator<{ at: string; template: Value }> {
    const seen = new Set<string>()
    function* inside(type: string, at: string, wrap: (value: Value) => Value): Generator<{ at: string; template: Value }> {
      if (seen.has(type)) return
      seen.add(type)
      const sample = SAMPLES[type] ?? {}
      yield { at: `${at}.nonsense`, template: wrap({ ...sample, nonsense: 1 }) }
      for (const [name, field] of fieldsOf(type) ?? []) {
        if (field.type === 'any' || LEFT_OUT.has(`${type}.${name}`)) continue
        const place = `${at}.${name}`
        yield { at: place, template: wrap({ ...sample, [name]: wrongFor(field) }) }
        if (fieldsOf(field.type) === undefined) continue
        const item = field.shape === 'list' ? `${place}[0]` : place
        yield* inside(field.type, item, (value) => wrap({ ...sample, [name]: field.shape === 'list' ? [value] : value }))
      }
    }
    const base = { metadata: { labels: { app: 'demo' } } }
    for (const entry of inside('PodSpec', 'spec', (spec) => ({ ...base, spec: { containers: [{ name: 'a', image: 'a' }], ...spec } })))
      yield entry
  }
})

/** They exist, but not in templates of pods that never end. */
const LEFT_OUT = new Set(['PodSpec.activeDeadlineSeconds', 'PodSpec.ephemeralContainers', 'PodSpec.containers.required'])

/** Required members, without which the server does not check the rest. */
const SAMPLES: Readonly<Record<string, Value>> = { Container: { name: 'a', image: 'a' } }

function wrongFor(field: FieldType): unknown {
  if (field.shape === 'list') return 'nonsense'
  if (field.shape === 'map') return ['nonsense']
  return fieldsOf(field.type) === undefined ? { nonsense: true } : 'nonsense'
}

function refOf(schema: Published | undefined): string | undefined {
  return (schema?.$ref ?? schema?.allOf?.[0]?.$ref)?.split('/').at(-1)
}

const NUMBERS = ['int32', 'int64', 'count', 'positive', 'weight', 'seconds', 'id', 'mode', 'port', 'portOrZero']

function difference(field: FieldType, published: Published, required: boolean): string | undefined {
  const shape = published.type === 'array' ? 'list' : published.additionalProperties ? 'map' : 'one'
  if (field.type === 'any') return undefined
  if (field.shape !== shape) return `is a ${shape}`
  if (field.required !== required && field.type !== 'Container') return required ? 'is required' : 'is not required'
  const keys = published['x-kubernetes-patch-merge-key'] === undefined ? [] : (published['x-kubernetes-list-map-keys'] ?? [])
  if (field.keys.join() !== keys.join()) return `has keys ${keys.join()}`
  if (keys.length > 0 && keys[0] !== published['x-kubernetes-patch-merge-key'])
    return `is merged by ${published['x-kubernetes-patch-merge-key']}`
  const one = published.items ?? published.additionalProperties ?? published
  const ref = refOf(one)
  if (fieldsOf(field.type) !== undefined) return ref === undefined ? 'is no object' : undefined
  const expected = ref?.split('.').at(-1) ?? one.type
  const ours = NUMBERS.includes(field.type)
    ? 'integer'
    : ({ bool: 'boolean', quantity: 'Quantity', portOrName: 'IntOrString' }[field.type] ?? 'string')
  return expected === ours ? undefined : `is a ${expected}`
}

import { apiRequest } from '@thv/testkit/cluster/http-request'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { beforeAll, expect, it } from 'vitest'
import type { JsonObject } from '../../kind-schema.ts'
import { recordedObject } from './recorded-object.ts'
import { SCENARIOS, type Scenario, type Step, WIDGET_CRD } from './scenarios.ts'

/*
 * Answers of the real server to the scenarios; `parity.test.ts` replays them through our code. Written by
 * `vitest run --project cluster <this file> -u`.
 */

const CONTENT_TYPES: Readonly<Record<Step['verb'], string>> = {
  create: 'application/json',
  update: 'application/json',
  apply: 'application/apply-patch+yaml',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
}

describeCluster('answers to applies and patches', () => {
  let namespace: string

  beforeAll(async () => {
    namespace = await testNamespace('parity')
    await apiRequest(sharedCluster(), '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { method: 'POST', body: WIDGET_CRD })
  })

  it('are those recorded', async () => {
    await expect
      .poll(async () => (await apiRequest(sharedCluster(), '/apis/apply.example.com/v1/widgets')).status, { timeout: 30_000 })
      .toBe(200)
    const answers: Record<string, unknown[]> = {}
    for (const [index, scenario] of SCENARIOS.entries()) {
      const name = `scenario-${index}`
      const list: unknown[] = []
      for (const step of scenario.steps) list.push(await answerOf(scenario, step, name))
      answers[scenario.name] = list
    }
    await expect(`${JSON.stringify(answers, null, 1)}\n`).toMatchFileSnapshot('../../../recordings/patch/parity/answers.golden.json')
  })

  async function answerOf(scenario: Scenario, step: Step, name: string): Promise<unknown> {
    const base = `${scenario.apiVersion.includes('/') ? '/apis' : '/api'}/${scenario.apiVersion}/namespaces/${namespace}/${scenario.plural}`
    const query = new URLSearchParams({ fieldManager: step.manager, ...(step.verb === 'apply' && { force: String(step.force ?? false) }) })
    const body =
      Array.isArray(step.body) || step.verb === 'merge' || step.verb === 'strategic' ? step.body : wholeObject(scenario, step, name)
    const target = `${base}/${name}${step.subresource ? `/${step.subresource}` : ''}`
    const { status, text } = await apiRequest(sharedCluster(), `${step.verb === 'create' ? base : target}?${query}`, {
      method: step.verb === 'create' ? 'POST' : step.verb === 'update' ? 'PUT' : 'PATCH',
      headers: { 'content-type': CONTENT_TYPES[step.verb] },
      body,
    })
    const answer = JSON.parse(text.replaceAll(namespace, 'parity')) as JsonObject
    if (status < 300) return { status, object: recordedObject(answer) }
    const { reason, message, details } = answer as { reason?: string; message?: string; details?: { causes?: unknown[] } }
    return { status, reason, message, ...(details?.causes && { causes: details.causes }) }
  }

  function wholeObject({ apiVersion, kind }: Scenario, { body }: Step, name: string): JsonObject {
    const object = body as JsonObject
    return { apiVersion, kind, ...object, metadata: { ...(object['metadata'] as JsonObject | undefined), name } }
  }
})

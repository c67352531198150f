import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiRequest } from '@thv/testkit/cluster/http-request'
import { ensureNamespace, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { describeHelm } from '@thv/testkit/helm/describe-helm'
import { type Helm, openHelm } from '@thv/testkit/helm/helm'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { LOCAL_OPERATOR_MANIFESTS, LOCAL_VALUES, OPERATOR_MANIFESTS, operatorManifests } from '../../scripts/manifests.ts'
import {
  CRD_CHART,
  EVERYTHING,
  GOLDENS,
  HELM_LIMIT_MS,
  type KubeObject,
  NAMESPACE_SCOPE,
  OPERATOR_CHART,
  type OperatorPod,
  objectsIn,
  operatorPod,
  path,
  renderOperator,
} from './charts.ts'
import { dryRun } from './kubectl.ts'

/* The charts: what they render, what they refuse, and what the API server says to it. `vitest -u` rewrites the goldens. */

describeHelm('charts', () => {
  let helm: Helm

  beforeAll(async () => {
    helm = await openHelm()
    for (const namespace of ['toolhive-system', 'team-a', 'team-b']) await ensureNamespace(namespace)
  }, HELM_LIMIT_MS)

  it.each([
    ['toolhive-operator-crds', CRD_CHART, []],
    ['toolhive-operator', OPERATOR_CHART, []],
    ['toolhive-operator with every value', OPERATOR_CHART, ['--values', EVERYTHING]],
  ])('%s passes helm lint --strict', async (_name, chart, more) => {
    const { code, stdout, stderr } = await helm.run(['lint', '--strict', ...more, chart])
    expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: expect.stringContaining('0 chart(s) failed') })
  })

  it('run the version of the project', () => {
    const { version } = JSON.parse(readFileSync(path('package.json'), 'utf8')) as { version: string }
    for (const chart of [CRD_CHART, OPERATOR_CHART]) {
      // Charts have versions of their own: see chart-version.test.ts.
      expect(parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8'))).toMatchObject({ appVersion: version })
    }
    expect(parse(readFileSync(join(OPERATOR_CHART, 'values.yaml'), 'utf8')).operator.image).toBe(`toolhive-ts:${version}`)
  })

  describe('toolhive-operator', () => {
    it.each(GOLDENS)('renders $name as its golden file says', async ({ name, values }) => {
      await expect(await renderOperator(helm, values)).toMatchFileSnapshot(path(`test/deploy/goldens/operator-${name}.golden.yaml`))
    })

    it.each(GOLDENS)('is taken by the API server: $name', async ({ values }) => {
      const rendered = await renderOperator(helm, values)
      const { code, stdout, stderr } = dryRun(rendered)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout.trim().split('\n')).toHaveLength(objectsIn(rendered).length)
    })

    it.each(GOLDENS)('has a pod that a restricted namespace admits: $name', async ({ values }) => {
      const namespace = await restrictedNamespace()
      const pod = operatorPod(await renderOperator(helm, values), namespace)
      expect(await createPod(pod)).toMatchObject({ status: 201 })
      // The namespace does refuse what it should.
      delete pod.spec.containers[0]?.securityContext
      expect(await createPod(pod)).toMatchObject({ status: 403, text: expect.stringContaining('violates PodSecurity') })
    })

    it('in namespace scope asks for no right on the cluster, and for rights in these namespaces only', async () => {
      const objects = objectsIn(await renderOperator(helm, [NAMESPACE_SCOPE]))
      expect(objects.filter((object) => object.kind.startsWith('Cluster'))).toEqual([])
      const places = objects.filter((object) => object.kind.startsWith('Role')).map((object) => object.metadata.namespace)
      expect([...new Set(places)]).toEqual(['team-a', 'team-b', 'toolhive-system'])
    })

    it('lies in deploy/manifests as it renders', async () => {
      await expect(await operatorManifests(helm)).toMatchFileSnapshot(path(OPERATOR_MANIFESTS))
      await expect(await operatorManifests(helm, LOCAL_VALUES)).toMatchFileSnapshot(path(LOCAL_OPERATOR_MANIFESTS))
    })

    it('is taken by the API server as plain manifests', () => {
      const text = readFileSync(path(OPERATOR_MANIFESTS), 'utf8')
      expect(text).not.toMatch(/helm/i)
      const { code, stdout, stderr } = dryRun(text)
      expect({ code, stderr }).toMatchObject({ code: 0 })
      expect(stdout.trim().split('\n')).toHaveLength(objectsIn(text).length)
    })
  })

  describe('toolhive-operator-crds', () => {
    const renderCrds = (set: readonly string[] = []) =>
      helm.template({ name: 'toolhive-operator-crds', chart: CRD_CHART, namespace: 'toolhive-system', set })
    const KEEP = { 'helm.sh/resource-policy': 'keep' }
    const committed = readdirSync(path('deploy/crds')).map((file) => parse(readFileSync(path(`deploy/crds/${file}`), 'utf8')) as KubeObject)

    it('renders the definitions of deploy/crds, which stay when the chart goes', async () => {
      const rendered = objectsIn(await renderCrds())
      expect(byName(rendered)).toEqual(byName(committed.map((crd) => ({ ...crd, metadata: { ...crd.metadata, annotations: KEEP } }))))
    })

    it('renders them without the annotation, or nothing at all', async () => {
      expect(byName(objectsIn(await renderCrds(['crds.keep=false'])))).toEqual(byName(committed))
      expect(objectsIn(await renderCrds(['crds.install=false']))).toEqual([])
    })

    it('is taken by the API server', async () => {
      const { code, stdout, stderr } = dryRun(await renderCrds())
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout.trim().split('\n')).toHaveLength(committed.length)
    })
  })
})

function byName(objects: readonly KubeObject[]): Map<string, KubeObject> {
  return new Map(objects.map((object) => [object.metadata.name, object]))
}

async function restrictedNamespace(): Promise<string> {
  const namespace = await testNamespace('charts')
  const answer = await apiRequest(sharedCluster(), `/api/v1/namespaces/${namespace}`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
  })
  expect(answer.status).toBe(200)
  return namespace
}

async function createPod(pod: OperatorPod): Promise<{ status: number; text: string }> {
  const { namespace } = pod.metadata
  await ensureDefaultAccount(namespace)
  return apiRequest(sharedCluster(), `/api/v1/namespaces/${namespace}/pods?dryRun=All&fieldValidation=Strict`, {
    method: 'POST',
    body: pod,
  })
}

/** Without it no pod is admitted; where a controller makes it, that may take a moment. */
async function ensureDefaultAccount(namespace: string): Promise<void> {
  const { status } = await apiRequest(sharedCluster(), `/api/v1/namespaces/${namespace}/serviceaccounts`, {
    method: 'POST',
    body: { metadata: { name: 'default' } },
  })
  expect([201, 409]).toContain(status)
}

import { fileURLToPath } from 'node:url'
import type { Helm } from '@thv/testkit/helm/helm'
import { parseAllDocuments } from 'yaml'

/* Shared by the tests of the charts. */

const ROOT = new URL('../../', import.meta.url)
export const path = (name: string): string => fileURLToPath(new URL(name, ROOT))

export const OPERATOR_CHART = path('deploy/charts/toolhive-operator')
export const CRD_CHART = path('deploy/charts/toolhive-operator-crds')
export const NAMESPACE_SCOPE = path('test/deploy/values/namespace-scope.yaml')
export const EVERYTHING = path('test/deploy/values/everything.yaml')
/** The sets of values whose output lies in `goldens`. */
export const GOLDENS: readonly { name: string; values: readonly string[] }[] = [
  { name: 'defaults', values: [] },
  { name: 'namespace-scope', values: [NAMESPACE_SCOPE] },
  { name: 'everything', values: [EVERYTHING] },
  { name: 'no-webhook', values: [path('test/deploy/values/no-webhook.yaml')] },
]
/** For a set-up in which helm may have to be built. */
export const HELM_LIMIT_MS = 20 * 60_000

export function renderOperator(helm: Helm, values: readonly string[] = []): Promise<string> {
  return helm.template({ name: 'toolhive-operator', chart: OPERATOR_CHART, namespace: 'toolhive-system', values })
}

export interface KubeObject {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec?: { readonly template?: { readonly spec: PodSpec } }
}

export interface PodSpec {
  readonly containers: { securityContext?: unknown; args?: readonly string[]; env?: readonly { name: string }[] }[]
}

export function objectsIn(yaml: string): KubeObject[] {
  return parseAllDocuments(yaml)
    .map((document) => document.toJSON() as KubeObject | null)
    .filter((object) => object !== null)
}

export interface OperatorPod {
  readonly metadata: { readonly name: string; readonly namespace: string }
  readonly spec: PodSpec
}

/** The pod of the Deployment. Its account is left out: it need not exist for the questions asked here. */
export function operatorPod(rendered: string, namespace: string): OperatorPod {
  const spec = objectsIn(rendered).find((object) => object.kind === 'Deployment')?.spec?.template?.spec
  if (!spec) throw new Error('the chart renders no Deployment')
  return { metadata: { name: 'operator', namespace }, spec: { ...spec, serviceAccountName: undefined } as PodSpec }
}

import { labelSelectorProblem } from '@thv/kube/objects/label-selector'
import Type, { type Static } from 'typebox'
import type { ObjectReader } from '../../object-reader.ts'
import { serverPathProblem } from './location-rules.ts'

const closed = { additionalProperties: false }

const crossNamespaceModes = ['referenceGrant', 'allowedRoutes', 'accepted'] as const

export const kubernetesSourceSchema = Type.Object(
  {
    namespaces: Type.Optional(Type.Array(Type.String(), { description: 'Namespaces to read. Empty: all.' })),
    labelSelector: Type.Optional(
      Type.String({
        description: 'Labels of the MCP resources to export, in the syntax of `kubectl -l`, such as `team=a,tier in (x,y)`. Empty: all.',
      }),
    ),
    crossNamespaceGateway: Type.Optional(
      Type.Union([Type.Literal('referenceGrant'), Type.Literal('allowedRoutes'), Type.Literal('accepted')], {
        default: 'accepted',
        description:
          'Permission that an HTTPRoute needs for a Gateway of another namespace: `accepted` by the Gateway, `allowedRoutes` of its listeners, or a `referenceGrant`.',
      }),
    ),
    clusterName: Type.Optional(
      Type.String({
        description: 'DNS label that goes before the namespace in generated names. Needed where one registry reads two clusters.',
      }),
    ),
    kubeconfig: Type.Optional(
      Type.Object(
        {
          path: Type.Optional(Type.String({ description: 'Absolute path of a kubeconfig; read at every fetch.' })),
          context: Type.Optional(Type.String({ description: 'Context to use instead of the current one.' })),
        },
        { ...closed, description: 'Cluster to read. Without it: KUBECONFIG, then the account of the pod, then ~/.kube/config.' },
      ),
    ),
  },
  closed,
)

export type KubernetesSource = Static<typeof kubernetesSourceSchema>

/** From one sync to the next where the configuration does not say. */
export const KUBERNETES_INTERVAL_MS = 30_000

const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/
const MAX_NAMESPACES = 256

/** Problems of the block; `known` reports members that it does not have. */
export function checkKubernetesSource(block: ObjectReader, known: (reader: ObjectReader, names: readonly string[]) => void): void {
  known(block, Object.keys(kubernetesSourceSchema.properties))
  const namespaces = block.texts('namespaces', { unique: true, check: namespaceProblem })
  if ((namespaces?.length ?? 0) > MAX_NAMESPACES)
    block.problem('namespaces', `must have at most ${MAX_NAMESPACES} items; leave it empty to read all`)
  block.text('labelSelector', { max: 4_096, check: labelSelectorProblem })
  block.text('crossNamespaceGateway', { oneOf: crossNamespaceModes })
  block.text('clusterName', { check: (name) => (LABEL.test(name) ? undefined : 'must be a DNS label such as east-1') })
  block.child('kubeconfig', {}, (kubeconfig) => {
    known(kubeconfig, ['path', 'context'])
    kubeconfig.text('path', { check: serverPathProblem })
    kubeconfig.text('context', { min: 1 })
  })
}

function namespaceProblem(name: string): string | undefined {
  return LABEL.test(name) ? undefined : 'must be the name of a namespace: at most 63 lower-case letters, digits and hyphens'
}

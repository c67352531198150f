import { formatDuration, tryParseDuration } from '@thv/kernel/duration'
import { labelSelectorProblem } from '@thv/kube/objects/label-selector'
import Type, { type Static } from 'typebox'
import type { ObjectReader } from '../../object-reader.ts'
import { serverPathProblem } from './location-rules.ts'

const closed = { additionalProperties: false }
const duration = (description: string) => Type.String({ format: 'go-duration', description })

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
    watch: Type.Optional(
      Type.Object(
        {
          enabled: Type.Optional(
            Type.Boolean({ default: false, description: 'Follow the cluster by watches; the interval compares with a list.' }),
          ),
          debounceInterval: Type.Optional(duration('Changes within this window become one sync, 100ms to 30s. Default 1s.')),
        },
        { ...closed, description: 'How changes are noticed. Without it the cluster is read at every interval.' },
      ),
    ),
    introspect: Type.Optional(
      Type.Object(
        {
          enabled: Type.Optional(
            Type.Boolean({
              default: false,
              description: 'Ask running servers that need no token for their tools, which become part of their entries.',
            }),
          ),
          timeout: Type.Optional(duration('How long a server may take to answer, 1s to 60s. Default 10s.')),
        },
        { ...closed, description: 'Where the tools of an entry come from when no annotation lists them.' },
      ),
    ),
    leaderElection: Type.Optional(
      Type.Object(
        {
          enabled: Type.Optional(
            Type.Boolean({ description: 'Whether only the holder of a Lease reads the cluster. Default: in a pod, without a kubeconfig.' }),
          ),
          id: Type.Optional(
            Type.String({
              description:
                'Name of the Lease. Default THV_REGISTRY_LEADER_ELECTION_ID, else toolhive-registry-kubernetes-source; further sources append their names.',
            }),
          ),
          namespace: Type.Optional(Type.String({ description: 'Namespace of the Lease. Default: that of the pod.' })),
          leaseDuration: Type.Optional(duration('How long others wait after the last renewal. Default 15s.')),
          renewDeadline: Type.Optional(duration('How long the leader tries to renew. Default 10s.')),
          retryPeriod: Type.Optional(duration('From one attempt to the next. Default 2s.')),
        },
        { ...closed, description: 'Which of several replicas reads the cluster.' },
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
  block.child('watch', {}, (watch) => {
    known(watch, ['enabled', 'debounceInterval'])
    watch.flag('enabled')
    durationOf(watch, 'debounceInterval', { min: 100, max: 30_000 })
  })
  block.child('introspect', {}, (introspect) => {
    known(introspect, ['enabled', 'timeout'])
    introspect.flag('enabled')
    durationOf(introspect, 'timeout', { min: 1_000, max: 60_000 })
  })
  block.child('leaderElection', {}, (election) => checkElection(election, known))
}

function checkElection(election: ObjectReader, known: (reader: ObjectReader, names: readonly string[]) => void): void {
  known(election, ['enabled', 'id', 'namespace', 'leaseDuration', 'renewDeadline', 'retryPeriod'])
  election.flag('enabled')
  election.text('id', {
    check: (id) => (SUBDOMAIN.test(id) ? undefined : 'must be the name of a Lease: lower-case letters, digits, dots and hyphens'),
  })
  election.text('namespace', { check: namespaceProblem })
  const limits = { min: 100, max: 3_600_000 }
  const lease = durationOf(election, 'leaseDuration', limits) ?? 15_000
  const renew = durationOf(election, 'renewDeadline', limits) ?? 10_000
  const retry = durationOf(election, 'retryPeriod', limits) ?? 2_000
  if (!(lease > renew && renew > retry * 1.2))
    election.problem('', 'leaseDuration must be longer than renewDeadline, and that longer than 1.2 times retryPeriod')
}

const SUBDOMAIN = /^(?=.{1,180}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/

function durationOf(reader: ObjectReader, name: string, { min, max }: { min: number; max: number }): number | undefined {
  const text = reader.text(name)
  if (text === undefined) return undefined
  const ms = tryParseDuration(text)
  if (ms === undefined) reader.problem(name, 'must be a duration such as 500ms or 2s')
  else if (ms < min || ms > max) reader.problem(name, `must be between ${formatDuration(min)} and ${formatDuration(max)}`)
  return ms
}

function namespaceProblem(name: string): string | undefined {
  return LABEL.test(name) ? undefined : 'must be the name of a namespace: at most 63 lower-case letters, digits and hyphens'
}

import type { KubeNode, Pod } from '@thv/kube'
import { type LabelSelectorExpression, parseLabelSelector } from '@thv/kube/objects/label-selector'

export interface Taint {
  readonly key: string
  readonly value?: string
  readonly effect: string
}

export interface Toleration {
  readonly key?: string
  readonly operator?: string
  readonly value?: string
  readonly effect?: string
}

/** Why a pod cannot run on a node, in the words that `FailedScheduling` counts; undefined when it can. */
export function misfit(pod: Pod, node: KubeNode): string | undefined {
  const tolerations = (pod.spec?.['tolerations'] ?? []) as readonly Toleration[]
  const untolerated = (taint: Taint) => !tolerations.some((toleration) => tolerates(toleration, taint))
  if (node.spec?.unschedulable === true && untolerated(UNSCHEDULABLE)) return 'node(s) were unschedulable'
  const taints = (node.spec?.['taints'] ?? []) as readonly Taint[]
  const taint = taints.find((one) => one.effect !== 'PreferNoSchedule' && untolerated(one))
  if (taint !== undefined) return `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`
  if (!matchesSelector(pod, node)) return "node(s) didn't match Pod's node affinity/selector"
  // On a cluster this is a taint; here nothing else writes it.
  return isReady(node) ? undefined : 'node(s) were not ready'
}

const UNSCHEDULABLE: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

function isReady(node: KubeNode): boolean {
  return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
}

function tolerates({ key = '', operator = 'Equal', value = '', effect = '' }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false
  if (key !== '' && key !== taint.key) return false
  if (operator === 'Exists') return true
  return key !== '' && value === (taint.value ?? '')
}

interface NodeSelectorTerm {
  readonly matchExpressions?: LabelSelectorExpression[]
  readonly matchFields?: { readonly key: string; readonly operator: string; readonly values?: readonly string[] }[]
}

/** Both the selector and one term of the required affinity must hold. */
function matchesSelector(pod: Pod, node: KubeNode): boolean {
  const { name, labels } = node.metadata
  const wanted = Object.entries((pod.spec?.['nodeSelector'] ?? {}) as Record<string, string>)
  if (!wanted.every(([key, value]) => labels?.[key] === value)) return false
  const affinity = pod.spec?.['affinity'] as { nodeAffinity?: Record<string, { nodeSelectorTerms?: NodeSelectorTerm[] }> } | undefined
  const terms = affinity?.nodeAffinity?.['requiredDuringSchedulingIgnoredDuringExecution']?.nodeSelectorTerms
  if (terms === undefined) return true
  return terms.some(({ matchExpressions = [], matchFields = [] }) => {
    if (matchExpressions.length + matchFields.length === 0) return false
    const fields = matchFields.every(
      ({ key, operator, values = [] }) => key === 'metadata.name' && values.includes(name) === (operator === 'In'),
    )
    return fields && parseLabelSelector({ matchExpressions }).matches(labels)
  })
}

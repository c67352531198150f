const WEBHOOKS = 'admission webhooks are not implemented, and the webhook of the spec is a container image'
const CONVERSION = 'conversion webhooks are not implemented, and the webhook of the spec is a container image'
const POLICIES = 'admission policies (admissionregistration.k8s.io) are not implemented'
const QUOTAS = 'ResourceQuota is not implemented'
const FLOW_CONTROL = 'API priority and fairness is not implemented; kinds without their effect would mislead'
const OTHER_KINDS = 'wants the kinds of webhooks, aggregation, batch and storage, which the platform does not have'
const IMAGE = 'waits for a pod of a container image to run; the platform runs programs, not images'

/** Specs of the suite that the local platform cannot pass, by a part of their name, with the reason. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  'AdmissionWebhook [Privileged:ClusterAdmin]': WEBHOOKS,
  'CustomResourceConversionWebhook [Privileged:ClusterAdmin]': CONVERSION,
  'CustomResourceFieldSelectors [Privileged:ClusterAdmin]': CONVERSION,
  'ValidatingAdmissionPolicy [Privileged:ClusterAdmin]': POLICIES,
  'ResourceQuota should': QUOTAS,
  'API priority and fairness': FLOW_CONTROL,
  'Aggregator Should be able to support the 1.17 Sample API Server': 'aggregated API servers are not implemented',
  'AggregatedDiscovery should support raw aggregated discovery endpoint Accept headers': OTHER_KINDS,
  'AggregatedDiscovery should support aggregated discovery interface [Conformance]': OTHER_KINDS,
  'Discovery should locate the groupVersion and a resource within each APIGroup': OTHER_KINDS,
  'Namespaces [Serial] should ensure that all pods are removed when a namespace is deleted': IMAGE,
}

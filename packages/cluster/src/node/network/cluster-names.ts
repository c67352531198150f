/** Meaning of a host name inside the cluster. */
export interface ClusterName {
  readonly namespace: string
  readonly service: string
  /** One pod of a headless Service. */
  readonly pod?: string
}

export interface ClusterNameReading {
  /** In the order in which a pod's resolver would try them. */
  readonly candidates: readonly ClusterName[]
  /** Nothing outside the cluster has a name of this form. */
  readonly certain: boolean
}

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const MAX_NAME = 253
const NOTHING: ClusterNameReading = { candidates: [], certain: false }

/**
 * `NAME`, `NAME.NS`, `NAME.NS.svc`, `NAME.NS.svc.DOMAIN`, and each with the host name of a pod before it. Short forms are completed
 * with the caller's namespace, as the search list of a pod's resolver does it.
 */
export function readClusterName(host: string, { namespace, domain }: { namespace?: string; domain: string }): ClusterNameReading {
  const name = host.toLowerCase().replace(/\.$/, '')
  if (name.length > MAX_NAME) return NOTHING
  const full = [`.svc.${domain}`, '.svc'].find((suffix) => name.endsWith(suffix))
  const labels = (full === undefined ? name : name.slice(0, -full.length)).split('.')
  if (!labels.every((label) => LABEL.test(label))) return { candidates: [], certain: full !== undefined }
  const [first = '', second, third, ...more] = labels
  if (full !== undefined && second !== undefined)
    return { candidates: more.length > 0 ? [] : [nameOf(first, second, third)], certain: true }
  if (full === '.svc') return { candidates: [{ service: first, namespace: 'svc' }], certain: false } // a namespace of that name
  if (full !== undefined) return { candidates: [], certain: true }
  if (third !== undefined) return NOTHING
  const own = namespace !== undefined && LABEL.test(namespace) ? namespace : undefined
  if (second === undefined) return { candidates: own === undefined ? [] : [{ service: first, namespace: own }], certain: false }
  const podOfOwn = own === undefined ? [] : [{ pod: first, service: second, namespace: own }]
  return { candidates: [...podOfOwn, { service: first, namespace: second }], certain: false }
}

function nameOf(first: string, second: string, third: string | undefined): ClusterName {
  return third === undefined ? { service: first, namespace: second } : { pod: first, service: second, namespace: third }
}

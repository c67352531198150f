import type { ImageProgram } from '../images/image-resolver.ts'
import type { HostCommand } from '../process/shared-processes.ts'
import type { ContainerSpec } from './pod-spec.ts'

/**
 * Variables that our programs take from their own environment, or not at all. Others may be meant for Node, OpenSSL or malloc, which read
 * those of the process: NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, TZ and the like.
 */
const OWN_VARIABLE =
  /^(?:TOOLHIVE|THV|OTEL|KUBERNETES)_|^(?:HOME|XDG_CONFIG_HOME|POD_NAME|POD_NAMESPACE|CLUSTER_DOMAIN|OPERATOR_OPENSHIFT|UNSTRUCTURED_LOGS)$/

/** Undefined for a container that needs a process of its own. */
export function hostCommand(
  { command = [], args = [], resources, stdin, workingDir }: ContainerSpec,
  { programs, hosts, env }: ImageProgram,
  wanted: Readonly<Record<string, string>>,
): HostCommand | undefined {
  const [name = '', ...more] = command
  const hostArgs = Object.hasOwn(hosts, name) ? hosts[name] : undefined
  const [file, ...first] = programs[name] ?? []
  if (hostArgs === undefined || file === undefined || more.length > 0) return undefined
  if (stdin === true || workingDir !== undefined || Object.keys(resources?.limits ?? {}).length > 0) return undefined
  if (Object.keys(wanted).some((variable) => !OWN_VARIABLE.test(variable))) return undefined
  // A server that a proxy starts itself would outlive it here.
  if (args.some((arg) => arg.startsWith('--runtime')) || wanted['TOOLHIVE_RUNTIME'] === 'local') return undefined
  return { file, args: [...first, ...hostArgs], env }
}

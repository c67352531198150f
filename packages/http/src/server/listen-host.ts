import { currentScope } from '@thv/kernel/program-scope'
import { classifyIp } from '../ip-address.ts'

/**
 * The address to listen on. Programs that share a process cannot share the bind guard of the local platform, which takes one address per
 * process; here they get the same: the pod's address in place of all addresses and of loopback, and loopback for a free port on all.
 */
export function listenHost({ host, port }: { readonly host: string; readonly port: number }): string {
  const podAddress = currentScope()?.env['THV_BIND_ADDRESS']
  if (!podAddress) return host
  const name = host.toLowerCase().replace(/\.$/, '')
  const isAll = name === '' || name === '0' || classifyIp(name) === 'unspecified'
  const isLoopback = ['localhost', '127.0.0.1', '::1', '::ffff:127.0.0.1'].includes(name)
  if (!isAll && !isLoopback) return host
  if (port !== 0) return podAddress
  return isAll ? '127.0.0.1' : host
}

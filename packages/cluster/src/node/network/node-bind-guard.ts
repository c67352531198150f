/**
 * Preloaded into every Node program of a pod (`--require`), so plain CommonJS for Node 18 and later. A server that listens on all
 * addresses would be open to the network, and would take its port away from every other pod; here it gets the pod's address instead.
 * Binds to loopback go there too, since a pod's own localhost is what they mean. Untouched: unix sockets, inherited handles, other
 * addresses, and port 0 on loopback (a program that talks to itself). Port 0 on all addresses becomes port 0 on loopback. Datagram
 * sockets with port 0 are clients and stay as they are.
 */
export const NODE_BIND_GUARD = `'use strict'
// Written by the platform at each start: changes are lost.
const net = require('node:net')
const dgram = require('node:dgram')

const podAddress = process.env.THV_BIND_ADDRESS
const mark = Symbol.for('dev.toolhive.bind-guard')

if (net.isIPv4(podAddress || '') && !net.Server.prototype[mark]) {
  Object.defineProperty(net.Server.prototype, mark, { value: true })
  guardListen()
  guardDatagrams()
}

function guardListen() {
  const listen = net.Server.prototype.listen
  net.Server.prototype.listen = function (...args) {
    const asked = listenOptions(args)
    if (asked === undefined) return listen.apply(this, args)
    const host = hostFor(asked.host, asked.port)
    if (host === undefined) return listen.apply(this, args)
    const options = Object.assign({}, asked, { host })
    delete options.ipv6Only // the new address is of IPv4
    const callback = args[args.length - 1]
    return typeof callback === 'function' ? listen.call(this, options, callback) : listen.call(this, options)
  }
}

// The address to listen on, where it is TCP; reads the arguments as Node does.
function listenOptions(args) {
  const first = args[0]
  if (args.length === 0 || typeof first === 'function') return { port: 0 }
  if (typeof first === 'object' && first !== null) {
    if (first instanceof net.Server || first._handle || first.handle || typeof first.listen === 'function') return undefined
    if (typeof first.fd === 'number' && first.fd >= 0) return undefined
    if (first.port === null || (first.port === undefined && 'port' in first)) return Object.assign({}, first, { port: 0 })
    return typeof first.port === 'number' || typeof first.port === 'string' ? first : undefined
  }
  if (typeof first === 'string' && !(Number(first) >= 0)) return undefined // a path
  const options = { port: first === undefined || first === null ? 0 : first }
  if (typeof args[1] === 'string') options.host = args[1]
  const backlog = Number(args[1]) > 0 ? Number(args[1]) : Number(args[2])
  if (backlog > 0) options.backlog = backlog
  return options
}

function guardDatagrams() {
  const bind = dgram.Socket.prototype.bind
  dgram.Socket.prototype.bind = function (...args) {
    const first = args[0]
    const isObject = typeof first === 'object' && first !== null
    if (isObject && (first instanceof dgram.Socket || typeof first.fd === 'number' || typeof first.recvStart === 'function'))
      return bind.apply(this, args)
    const port = isObject ? first.port : first
    const address = isObject ? first.address : args[1]
    if (!(Number(port) > 0)) return bind.apply(this, args)
    const host = hostFor(typeof address === 'string' ? address : undefined, port)
    if (host === undefined) return bind.apply(this, args)
    const mapped = this.type === 'udp6' ? '::ffff:' + host : host
    const callback = args[args.length - 1]
    const options = Object.assign({}, isObject ? first : {}, { port: Number(port), address: mapped })
    return typeof callback === 'function' ? bind.call(this, options, callback) : bind.call(this, options)
  }
}

// Undefined: as it was asked for.
function hostFor(host, port) {
  const kind = kindOf(host)
  if (kind === undefined) return undefined
  if (Number(port) !== 0) return podAddress
  return kind === 'all' ? '127.0.0.1' : undefined
}

function kindOf(host) {
  if (host === undefined || host === null || host === '') return 'all'
  if (typeof host !== 'string') return undefined
  const name = host.toLowerCase().replace(/[.]$/, '')
  const text = net.isIPv6(name) ? canonical(name) : name
  if (['0', '0.0.0.0', '::', '::ffff:0:0'].includes(text)) return 'all'
  if (['localhost', '127.0.0.1', '::1', '::ffff:7f00:1'].includes(text)) return 'loopback'
  return undefined
}

function canonical(address) {
  try {
    return new URL('http://[' + address + ']').hostname.slice(1, -1)
  } catch {
    return address // with a zone: an explicit address
  }
}
`

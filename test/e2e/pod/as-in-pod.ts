import dns from 'node:dns/promises'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

/*
 * Loaded with --import before a program: what the kubelet would mount is read from POD_ROOT, and the names of POD_HOSTS mean this
 * machine, as if the cluster's DNS had said so. Nothing else of the program changes.
 */

const MOUNTED = /^\/(etc\/runconfig|var\/run\/secrets\/kubernetes\.io)\//
const root = process.env['POD_ROOT'] ?? ''
const hosts = (process.env['POD_HOSTS'] ?? '').split(',')

const readFile: (path: unknown, options: unknown) => Promise<unknown> = fs.readFile as never
const lookup: (host: string, options: unknown) => Promise<unknown> = dns.lookup as never

Object.assign(fs, {
  readFile: (path: unknown, options: unknown) => readFile(typeof path === 'string' && MOUNTED.test(path) ? root + path : path, options),
})
Object.assign(dns, { lookup: (host: string, options: unknown) => lookup(hosts.includes(host) ? '127.0.0.1' : host, options) })
syncBuiltinESMExports()

import { dirname, relative, resolve } from 'node:path'
import { DATA_FOLDER } from '../cluster/open-cluster.ts'
import { REGISTRY } from '../registry/registry-state.ts'
import type { ServerState } from './server-states.ts'

export interface SummaryFacts {
  readonly states: readonly ServerState[]
  readonly kubeconfig: string
  readonly logFile: string
  readonly cwd: string
  readonly detached: boolean
}

/** What to do with a platform that has just started. */
export function summaryText({ states, kubeconfig, logFile, cwd, detached }: SummaryFacts): string {
  const registry = states.find(({ name }) => name === REGISTRY)
  const servers = states.filter((each) => each.url !== undefined && each !== registry)
  const failing = states.filter(({ state }) => state !== 'ready')
  const [first] = servers
  const config = shortest(kubeconfig, cwd)
  const folder = dirname(kubeconfig)
  // Other folders than the usual one are not found by themselves.
  const flag = folder === resolve(cwd, DATA_FOLDER) ? '' : ` --data-dir ${shortest(folder, cwd)}`
  return [
    '',
    ...(failing.length > 0 ? troubleLines(failing, { logFile: shortest(logFile, cwd), flag }) : []),
    ...(first === undefined ? emptyLines() : serverLines(servers)),
    ...(first === undefined ? [] : clientLines(servers)),
    ...(registry?.url === undefined ? [] : [`Registry of public MCP servers: ${registry.url}/v0.1/servers`, '']),
    'Try next, in another terminal:',
    ...(first === undefined ? [] : callLines(first.name, flag)),
    `  npx thv apply -f FILE${flag}     declare a server of your own (deploy/examples/quickstart shows how)`,
    ...(registry?.url === undefined ? [] : [`  npx thv search browser${flag}    find a server in the registry`]),
    `  kubectl --kubeconfig ${config} get mcpservers`,
    '',
    detached ? `"npx thv down${flag}" stops it.` : 'Ctrl-C stops it.',
    '',
  ].join('\n')
}

function serverLines(servers: readonly ServerState[]): string[] {
  const width = Math.max(...servers.map(({ name }) => name.length))
  return ['MCP servers:', ...servers.map(({ name, url }) => `  ${name.padEnd(width)}  ${url}`), '']
}

function clientLines(servers: readonly ServerState[]): string[] {
  const [first] = servers
  const all = Object.fromEntries(servers.map(({ name, url }) => [keyOf(name), { type: 'http', url }]))
  const json = (value: unknown) => JSON.stringify(value).replaceAll('":', '": ').replaceAll(',"', ', "')
  return [
    'In an MCP client:',
    `  Claude    claude mcp add --transport http ${keyOf(first?.name ?? '')} ${first?.url}`,
    `  VS Code   code --add-mcp '${json({ name: keyOf(first?.name ?? ''), type: 'http', url: first?.url })}'`,
    `  JSON      ${json({ mcpServers: all })}`,
    '',
  ]
}

function callLines(name: string, flag: string): string[] {
  return [
    `  npx thv tools ${name}${flag}`,
    ...(name === 'everything' ? [`  npx thv call everything echo message=hello${flag}`] : []),
    `  npx thv logs ${name} -f${flag}`,
  ]
}

function emptyLines(): string[] {
  return ['The platform runs, and there is no server in it that is ready.', '']
}

function troubleLines(failing: readonly ServerState[], { logFile, flag }: { logFile: string; flag: string }): string[] {
  return [
    'Not ready yet:',
    ...failing.map(({ name, state, detail }) => `  ${name}: ${state}${detail === '' ? '' : ` ${detail}`}`),
    `  It is tried again by itself. "npx thv describe mcpserver NAME${flag}" and "npx thv logs NAME${flag}" say more; the platform's own log is ${logFile}.`,
    '',
  ]
}

/** Names of clients' servers have no slashes. */
function keyOf(name: string): string {
  return name.replaceAll('/', '-')
}

function shortest(path: string, cwd: string): string {
  const near = relative(cwd, path)
  return near.startsWith('..') || near === '' ? path : near
}

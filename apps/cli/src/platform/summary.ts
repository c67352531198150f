import { dirname, relative, resolve } from 'node:path'
import { DATA_FOLDER } from '../cluster/open-cluster.ts'
import { REGISTRY } from '../registry/registry-state.ts'
import { MAX_COLUMNS, wrapped } from '../text/wrapped.ts'
import type { ServerState } from './server-states.ts'

export interface SummaryFacts {
  readonly states: readonly ServerState[]
  readonly kubeconfig: string
  readonly logFile: string
  readonly cwd: string
  readonly detached: boolean
}

/** Next steps with a platform that has just started. */
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
    ...hintLines([
      ...(first === undefined ? [] : callHints(first.name, flag)),
      ...(servers.some(({ name }) => name === JOINED) ? joinedHints(flag) : []),
      [`npx thv apply -f FILE${flag}`, 'declare a server (see deploy/examples/quickstart)'],
      ...(registry?.url === undefined ? [] : [[`npx thv search browser${flag}`, 'find a server in the registry'] as const]),
      [`kubectl --kubeconfig ${config} get mcpservers`, ''],
    ]),
    '',
    wrapped(detached ? `"npx thv down${flag}" stops it.` : 'Ctrl-C stops it.'),
    '',
  ].join('\n')
}

function serverLines(servers: readonly ServerState[]): string[] {
  const width = Math.max(...servers.map(({ name }) => name.length))
  return ['MCP servers:', ...servers.map(({ name, url }) => `  ${wrapped(`${name.padEnd(width)}  ${url}`, { first: 2, indent: 4 })}`), '']
}

function clientLines(servers: readonly ServerState[]): string[] {
  const [first] = servers
  const name = keyOf(first?.name ?? '')
  const all = servers.map((server) => `${json(keyOf(server.name))}: ${json({ type: 'http', url: server.url })}`)
  return [
    'In an MCP client:',
    `  Claude    ${wrappedCommand(`claude mcp add --transport http ${name} ${first?.url}`)}`,
    // A line end inside the quotes is white space to JSON.
    `  VS Code   code --add-mcp '${wrapped(json({ name, type: 'http', url: first?.url }), { first: 29, indent: 10 })}'`,
    '  JSON',
    '    {"mcpServers": {',
    ...all.map((line, index) => `      ${wrapped(`${line}${index < all.length - 1 ? ',' : '}}'}`, { first: 6, indent: 10 })}`),
    '',
  ]
}

function json(value: unknown): string {
  return JSON.stringify(value).replaceAll('":', '": ').replaceAll(',"', ', "')
}

type Hint = readonly [command: string, comment: string]

function callHints(name: string, flag: string): Hint[] {
  return [
    [`npx thv tools ${name}${flag}`, ''],
    ...(name === 'everything' ? [[`npx thv call everything echo message=hello${flag}`, ''] as const] : []),
    [`npx thv logs ${name} -f${flag}`, ''],
  ]
}

/** The virtual server of the quick start. */
const JOINED = 'all-in-one'

function joinedHints(flag: string): Hint[] {
  return [[`npx thv call ${JOINED} recommend_server task=browser${flag}`, 'a tool made of the tools of several servers']]
}

/** Comments stand beside their commands, or above where the line would be too long. */
function hintLines(hints: readonly Hint[]): string[] {
  const commented = hints.filter(([, comment]) => comment !== '')
  const width = Math.max(...commented.map(([command]) => command.length), 0)
  return hints.flatMap(([command, comment]) => {
    const line = `  ${command.padEnd(comment === '' ? 0 : width)}${comment === '' ? '' : `    # ${comment}`}`
    if (line.length <= MAX_COLUMNS) return [line]
    return [...(comment === '' ? [] : [`  # ${comment}`]), `  ${wrappedCommand(command)}`]
  })
}

/** A shell takes a line that ends with a backslash and the next one for one. */
function wrappedCommand(command: string): string {
  return wrapped(command, { first: 14, indent: 4, columns: MAX_COLUMNS - 2 }).replaceAll('\n', ' \\\n')
}

function emptyLines(): string[] {
  return ['The platform is running, but no server is ready.', '']
}

function troubleLines(failing: readonly ServerState[], { logFile, flag }: { logFile: string; flag: string }): string[] {
  const line = (text: string) => `  ${wrapped(text, { first: 2, indent: 4 })}`
  return [
    'Not ready yet:',
    ...failing.map(({ name, state, detail }) => line(`${name}: ${state}${detail === '' ? '' : ` ${detail}`}`)),
    line('The platform keeps trying. More about it:'),
    ...hintLines([
      [`npx thv describe mcpserver NAME${flag}`, ''],
      [`npx thv logs NAME${flag}`, ''],
    ]).map((each) => `  ${each}`),
    line(`  and the platform's own log, ${logFile}`),
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

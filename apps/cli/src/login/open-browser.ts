import { spawn } from 'node:child_process'

const COMMANDS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Opens the user's browser, if there is one: `$BROWSER`, else the system's own. The address is printed too, so a failure is no error. */
export function openBrowser(url: string, variables: Readonly<Record<string, string | undefined>>): void {
  const own = variables['BROWSER']?.split(' ').filter((word) => word !== '')
  const [program = '', ...args] = own?.length ? own : (COMMANDS[process.platform] ?? ['xdg-open'])
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true })
  child.once('error', () => {})
  child.unref()
}

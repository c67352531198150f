import { readSmallFile } from '../fetch/small-file.ts'
import type { GitSource } from '../fetch/source-config.ts'
import { failed } from './git-error.ts'

/** The address to fetch and to show, and what signs in there. */
export interface GitPlace {
  /** Without user and password. */
  readonly repository: URL
  /** Value of an Authorization header. A secret. */
  readonly authorization: string | undefined
}

/** Reads the password again each time: secrets are rotated in their files. No error says more of it than where it should be. */
export async function gitPlace(git: GitSource): Promise<GitPlace> {
  const repository = new URL(git.repository)
  const { username, password } = repository
  repository.username = ''
  repository.password = ''
  if (git.auth !== undefined) return { repository, authorization: basic(git.auth.username, await passwordFrom(git.auth.passwordFile)) }
  if (username === '' && password === '') return { repository, authorization: undefined }
  try {
    return { repository, authorization: basic(decodeURIComponent(username), decodeURIComponent(password)) }
  } catch {
    throw failed(`the user name or password in the address of ${repository.href} is not percent-encoded as it must be`)
  }
}

async function passwordFrom(path: string): Promise<string> {
  const file = { path, label: 'git.auth.passwordFile' }
  const password = (await readSmallFile(file)).toString('utf8').trim()
  if (password === '') throw failed(`${file.label} ${path} is empty`)
  return password
}

function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

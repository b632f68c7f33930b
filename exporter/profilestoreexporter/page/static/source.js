// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Links to the source of a line: in the repository that the profiles name, in that of a Go module, or by the configured template. Pure
// functions.

// repositoryURL returns the page of a repository, '' if it is not one of HTTP: what a producer writes must never become a script.
export function repositoryURL(text) {
  const ssh = /^(?:ssh:\/\/)?git@([\w.-]+)[:/](.+)$/.exec(text);
  let url;
  try {
    url = new URL(ssh ? `https://${ssh[1]}/${ssh[2]}` : text);
  } catch {
    return '';
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return '';
  return `${url.protocol}//${url.host}${url.pathname}`.replace(/\/+$/, '').replace(/\.git$/, '');
}

// blobOf returns the address of a line at a revision, as the most common servers expect it.
function blobOf(repository, revision, file, line) {
  const {host} = new URL(repository);
  const path = file.split('/').map(encodeURIComponent).join('/');
  const [blob, fragment] = host.includes('gitlab') ? ['-/blob', '#L'] : host.includes('bitbucket') ? ['src', '#lines-']
    : /codeberg|gitea|forgejo/.test(host) ? ['src/commit', '#L'] : ['blob', '#L'];
  return `${repository}/${blob}/${encodeURIComponent(revision)}/${path}${line ? `${fragment}${line}` : ''}`;
}

// sourceLink returns the address of a line of a file, '' if it is not known where it is. A template has {file}, {line}, {repository},
// {revision} and {service}.
export function sourceLink({file, line, repository = '', revision = '', service = '', template = ''}) {
  if (!file || /(^|\/)\.\.(\/|$)/.test(file)) return '';
  const home = repositoryURL(repository);
  if (template) return fill(template, {file: file.replace(/^\/+/, ''), line: line || 1, repository: home, revision, service});
  // A dependency, as Go's -trimpath writes it: github.com/owner/name@v1.2.3/path/file.go.
  const [, module, version, rest] = /^((?:github\.com|gitlab\.com|codeberg\.org)\/[^/@]+\/[^/@]+)(?:\/v\d+)?@(v[^/]+)\/(.+)$/.exec(file) ?? [];
  if (module) return blobOf(`https://${module}`, tagOf(version), rest, line);
  if (!home || !revision) return '';
  // Go's -trimpath writes the path of the module; other programs may write one within the repository.
  const name = home.replace(/^https?:\/\//, '');
  if (file.startsWith(`${name}/`)) return blobOf(home, revision, file.slice(name.length + 1).replace(/^v\d+\//, ''), line);
  const inside = file.indexOf(`/${name.slice(name.lastIndexOf('/') + 1)}/`);
  if (inside >= 0) return blobOf(home, revision, file.slice(file.indexOf('/', inside + 1) + 1), line);
  return file.startsWith('/') || /^[A-Za-z]:/.test(file) || /^[\w-]+\.[\w.-]+\//.test(file) ? '' : blobOf(home, revision, file.replace(/^\.\//, ''), line);
}

// tagOf returns the revision of a Go module's version: a tag, or the commit of a pseudo-version.
function tagOf(version) {
  const commit = /-(?:0\.)?\d{14}-([0-9a-f]{12})$/.exec(version);
  return commit ? commit[1] : version.replace(/\+incompatible$/, '');
}

function fill(template, values) {
  const encode = (name, value) => (name === 'repository' ? value : String(value).split('/').map(encodeURIComponent).join('/'));
  const text = template.replace(/\{(file|line|repository|revision|service)\}/g, (_, name) => encode(name, values[name]));
  return /^https?:\/\//.test(text) ? text : '';
}

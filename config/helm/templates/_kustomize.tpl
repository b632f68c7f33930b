{{/*
The manifests are those of config/kubernetes, which the chart has in the folder manifests. These templates do what kustomize does
with a folder there, as far as the folders use it. They return nothing: they change the dictionaries that they get.

state has: files, the chart's; objects, a list; configMaps, the data of each by name.
*/}}

{{/* Adds a folder: its resources, its ConfigMaps, and its patches of everything added before. */}}
{{- define "kustomize.add" -}}
{{- $state := .state -}}
{{- $folder := printf "manifests/%s" .folder -}}
{{- $kustomization := include "kustomize.read" (dict "state" $state "path" (printf "%s/kustomization.yaml" $folder)) | fromYaml -}}
{{- range $kustomization.resources -}}
  {{- $text := include "kustomize.read" (dict "state" $state "path" (printf "%s/%s" $folder .)) -}}
  {{- range regexSplit "(?m)^---$" $text -1 -}}
    {{- $_ := set $state "objects" (append $state.objects (fromYaml .)) -}}
  {{- end -}}
{{- end -}}
{{- range $kustomization.configMapGenerator -}}
  {{- $data := get $state.configMaps .name | default dict -}}
  {{- range .files -}}
    {{- $path := splitList "=" . | last -}}
    {{- $_ := set $data (splitList "=" . | first) (include "kustomize.read" (dict "state" $state "path" (printf "%s/%s" $folder $path))) -}}
  {{- end -}}
  {{- range .literals -}}
    {{- $parts := splitn "=" 2 . -}}
    {{- $_ := set $data $parts._0 $parts._1 -}}
  {{- end -}}
  {{- $_ := set $state.configMaps .name $data -}}
{{- end -}}
{{- range $patch := $kustomization.patches -}}
  {{- $merged := dict -}}
  {{- $target := $patch.target -}}
  {{- if not $target -}}
    {{- $merged = fromYaml $patch.patch -}}
    {{- $target = dict "kind" $merged.kind "name" $merged.metadata.name -}}
  {{- end -}}
  {{- range $object := $state.objects -}}
    {{- $label := splitList "=" ($target.labelSelector | default "") -}}
    {{- $value := get ($object.metadata.labels | default dict) (first $label) -}}
    {{- if and (or (not $target.kind) (regexMatch (printf "^(%s)$" $target.kind) $object.kind)) (or (not $target.name) (eq $target.name $object.metadata.name))
               (or (not $target.labelSelector) (eq $value (last $label))) -}}
      {{- if $merged -}}
        {{- include "kustomize.merge" (dict "into" $object "from" $merged) -}}
      {{- else -}}
        {{- range fromYamlArray $patch.patch -}}
          {{- include "kustomize.operation" (dict "object" $object "operation" .) -}}
        {{- end -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Returns a file of the chart. */}}
{{- define "kustomize.read" -}}
{{- $content := .state.files.Get .path -}}
{{- if not $content -}}
  {{- fail (printf "the chart has no file %s: is manifests a link to config/kubernetes?" .path) -}}
{{- end -}}
{{- $content -}}
{{- end -}}

{{/* Applies an operation of a JSON patch (RFC 6902) to an object: add, replace, remove. */}}
{{- define "kustomize.operation" -}}
{{- $operation := .operation -}}
{{- $node := .object -}}
{{- $parent := dict -}}
{{- $name := "" -}}
{{- $path := splitList "/" $operation.path | rest -}}
{{- range initial $path -}}
  {{- $step := replace "~1" "/" . -}}
  {{- if kindIs "slice" $node -}}
    {{- $node = index $node (int $step) -}}
  {{- else -}}
    {{- $parent = $node -}}
    {{- $name = $step -}}
    {{- $node = get $node $step -}}
  {{- end -}}
{{- end -}}
{{- $last := last $path | replace "~1" "/" -}}
{{- if kindIs "slice" $node -}}
  {{- /* A list cannot be changed: its parent gets another one. */ -}}
  {{- if eq $last "-" -}}
    {{- $_ := set $parent $name (append $node $operation.value) -}}
  {{- else -}}
    {{- $i := int $last -}}
    {{- $_ := set $parent $name (concat (slice $node 0 $i) (slice $node (add1 $i))) -}}
  {{- end -}}
{{- else if eq $operation.op "remove" -}}
  {{- $_ := unset $node $last -}}
{{- else -}}
  {{- $_ := set $node $last $operation.value -}}
{{- end -}}
{{- end -}}

{{/* Merges a dictionary into another as a strategic merge patch: lists of these names by a key, other lists as a whole. */}}
{{- define "kustomize.merge" -}}
{{- $keys := dict "containers" "name" "env" "name" "ports" "containerPort" "volumeMounts" "mountPath" "volumes" "name" -}}
{{- range $name, $value := .from -}}
  {{- $old := get $.into $name -}}
  {{- $key := get $keys $name -}}
  {{- if and (kindIs "map" $value) (kindIs "map" $old) -}}
    {{- include "kustomize.merge" (dict "into" $old "from" $value) -}}
  {{- else if and $key (kindIs "slice" $old) -}}
    {{- $new := list -}}
    {{- range $item := $value -}}
      {{- $found := false -}}
      {{- range $old -}}
        {{- if eq (toString (get . $key)) (toString (get $item $key)) -}}
          {{- $found = true -}}
          {{- include "kustomize.merge" (dict "into" . "from" $item) -}}
        {{- end -}}
      {{- end -}}
      {{- if not $found -}}
        {{- $new = append $new $item -}}
      {{- end -}}
    {{- end -}}
    {{- /* As kustomize does it. */ -}}
    {{- $_ := set $.into $name (concat $new $old) -}}
  {{- else if kindIs "invalid" $value -}}
    {{- $_ := unset $.into $name -}}
  {{- else -}}
    {{- $_ := set $.into $name $value -}}
  {{- end -}}
{{- end -}}
{{- end -}}

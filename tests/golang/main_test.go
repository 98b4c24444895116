// Package golang_test uses an API server as programs in Go do: with client-go and controller-runtime.
//
// test_programs.py starts a cluster and runs these tests with KUBECONFIG set.
package golang_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is how long anything may take that happens without another request.
const patience = 20 * time.Second

var (
	config  *rest.Config
	typed   *kubernetes.Clientset
	untyped *dynamic.DynamicClient
)

func TestMain(m *testing.M) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		fmt.Println("KUBECONFIG names no cluster; run python -m pytest tests/golang")
		os.Exit(1)
	}
	var err error
	if config, err = clientcmd.BuildConfigFromFlags("", path); err != nil {
		panic(err)
	}
	config.QPS, config.Burst = 1000, 1000
	typed, untyped = kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	if err := define(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// namespace makes a namespace for one test, which is deleted with all that is in it.
func namespace(t *testing.T) string {
	t.Helper()
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "go-"}}
	made, err := typed.CoreV1().Namespaces().Create(t.Context(), wanted, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		_ = typed.CoreV1().Namespaces().Delete(context.Background(), made.Name, metav1.DeleteOptions{})
	})
	return made.Name
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect[T comparable](t *testing.T, what string, found, wanted T) {
	t.Helper()
	if found != wanted {
		t.Fatalf("%s: found %v, expected %v", what, found, wanted)
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() (bool, error)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		done, err := holds()
		if done && err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s; the last error is %v", what, patience, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Fleets are a custom kind whose members are ConfigMaps.
var (
	fleetKind   = schema.GroupVersionKind{Group: "golang.holdfast.dev", Version: "v1", Kind: "Fleet"}
	fleets      = schema.GroupVersionResource{Group: fleetKind.Group, Version: "v1", Resource: "fleets"}
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

type object = map[string]any

// define creates the definition of Fleets, and waits until they are served.
func define() error {
	spec := object{
		"group": fleetKind.Group,
		"scope": "Namespaced",
		"names": object{"kind": "Fleet", "listKind": "FleetList", "plural": "fleets", "singular": "fleet"},
		"versions": []any{object{
			"name": "v1", "served": true, "storage": true,
			"subresources": object{"status": object{}, "scale": object{
				"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
			}},
			"schema": object{"openAPIV3Schema": object{
				"type": "object",
				"properties": object{
					"spec": object{"type": "object", "properties": object{
						"size":  object{"type": "integer", "minimum": int64(0), "default": int64(1)},
						"color": object{"type": "string"},
					}},
					"status": object{"type": "object", "properties": object{"size": object{"type": "integer"}}},
				},
			}},
		}},
	}
	definition := &unstructured.Unstructured{Object: object{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   object{"name": "fleets." + fleetKind.Group},
		"spec":       spec,
	}}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := untyped.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for {
		_, err := untyped.Resource(fleets).List(ctx, metav1.ListOptions{})
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func fleet(namespace, name string, size int64) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: object{"spec": object{"size": size}}}
	made.SetGroupVersionKind(fleetKind)
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

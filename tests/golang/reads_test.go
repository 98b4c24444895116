package golang_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

func TestDiscoveryMapsEveryKind(t *testing.T) {
	t.Parallel()
	client := discovery.NewDiscoveryClientForConfigOrDie(config)
	_, lists, err := client.ServerGroupsAndResources()
	check(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	kinds := 0
	for _, list := range lists {
		for _, each := range list.APIResources {
			if !strings.Contains(each.Name, "/") {
				group, err := schema.ParseGroupVersion(list.GroupVersion)
				check(t, err)
				_, err = mapper.RESTMapping(schema.GroupKind{Group: group.Group, Kind: each.Kind}, group.Version)
				check(t, err)
				kinds++
			}
		}
	}
	if kinds < 40 {
		t.Fatalf("only %d kinds were discovered", kinds)
	}
	mapping, err := mapper.RESTMapping(fleetKind.GroupKind())
	check(t, err)
	expect(t, "resource", mapping.Resource, fleets)
	expect(t, "scope", mapping.Scope.Name(), meta.RESTScopeNameNamespace)
	_, err = mapper.RESTMapping(schema.GroupKind{Group: fleetKind.Group, Kind: "Nothing"})
	expect(t, "no match", meta.IsNoMatchError(err), true)
	paths, err := client.OpenAPIV3().Paths()
	check(t, err)
	_, served := paths["apis/"+fleetKind.GroupVersion().String()]
	expect(t, "schemas of fleets", served, true)
	version, err := client.ServerVersion()
	check(t, err)
	expect(t, "major version", version.Major, "1")
}

func TestListsComeInChunks(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	client := untyped.Resource(fleets).Namespace(ns)
	for number := range 25 {
		made := fleet(ns, fmt.Sprintf("f%02d", number), 1)
		made.SetLabels(map[string]string{"odd": fmt.Sprint(number % 2)})
		_, err := client.Create(t.Context(), made, metav1.CreateOptions{})
		check(t, err)
	}
	first, err := client.List(t.Context(), metav1.ListOptions{Limit: 10})
	check(t, err)
	expect(t, "first chunk", len(first.Items), 10)
	expect(t, "left", *first.GetRemainingItemCount(), int64(15))
	second, err := client.List(t.Context(), metav1.ListOptions{Limit: 10, Continue: first.GetContinue()})
	check(t, err)
	expect(t, "first of the second chunk", second.Items[0].GetName(), "f10")
	expect(t, "version", second.GetResourceVersion(), first.GetResourceVersion())

	count := 0
	lister := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return client.List(t.Context(), options)
	}))
	lister.PageSize = 4
	check(t, lister.EachListItem(t.Context(), metav1.ListOptions{LabelSelector: "odd=0"}, func(runtime.Object) error {
		count++
		return nil
	}))
	expect(t, "all chunks", count, 13)

	names, err := metadata.NewForConfigOrDie(config).Resource(fleets).Namespace(ns).List(t.Context(), metav1.ListOptions{})
	check(t, err)
	expect(t, "metadata", len(names.Items), 25)
	check(t, client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "odd=1"}))
	left, err := client.List(t.Context(), metav1.ListOptions{})
	check(t, err)
	expect(t, "left", len(left.Items), 13)
}

func TestAWatchListEndsWithABookmark(t *testing.T) {
	t.Parallel()
	maps := typed.CoreV1().ConfigMaps(namespace(t))
	for _, name := range []string{"a", "b"} {
		made := configMap(name, nil)
		made.Labels = map[string]string{"watched": "yes"}
		_, err := maps.Create(t.Context(), made, metav1.CreateOptions{})
		check(t, err)
	}
	yes := true
	stream, err := maps.Watch(t.Context(), metav1.ListOptions{
		LabelSelector: "watched=yes", SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	check(t, err)
	defer stream.Stop()
	for _, name := range []string{"a", "b"} {
		event := next(t, stream)
		expect(t, "type", event.Type, watch.Added)
		expect(t, "name", event.Object.(*corev1.ConfigMap).Name, name)
	}
	event := next(t, stream)
	expect(t, "type", event.Type, watch.Bookmark)
	expect(t, "end", event.Object.(*corev1.ConfigMap).Annotations[metav1.InitialEventsAnnotationKey], "true")
	check(t, maps.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	expect(t, "type", next(t, stream).Type, watch.Deleted)
}

func next(t *testing.T, stream watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-stream.ResultChan():
		if !open {
			t.Fatal("the watch ended")
		}
		return event
	case <-time.After(patience):
		t.Fatal("no event")
	}
	return watch.Event{}
}

func TestInformersFollowAndResync(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	maps := typed.CoreV1().ConfigMaps(ns)
	_, err := maps.Create(t.Context(), configMap("a", map[string]string{"n": "0"}), metav1.CreateOptions{})
	check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	factory := informers.NewSharedInformerFactoryWithOptions(typed, time.Second, informers.WithNamespace(ns))
	informer := factory.Core().V1().ConfigMaps()
	seen := make(chan string, 100)
	_, err = informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { seen <- "added " + obj.(*corev1.ConfigMap).Name },
		UpdateFunc: func(old, obj any) {
			kind := "changed"
			if old.(*corev1.ConfigMap).ResourceVersion == obj.(*corev1.ConfigMap).ResourceVersion {
				kind = "resynced"
			}
			seen <- kind + " " + obj.(*corev1.ConfigMap).Name
		},
		DeleteFunc: func(obj any) { seen <- "deleted " + obj.(metav1.Object).GetName() },
	})
	check(t, err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	await := func(wanted string) {
		t.Helper()
		deadline := time.After(patience)
		for {
			select {
			case found := <-seen:
				if found == wanted {
					return
				}
			case <-deadline:
				t.Fatalf("%s: not seen", wanted)
			}
		}
	}
	await("added a")
	await("resynced a")
	_, err = maps.Update(t.Context(), configMap("a", map[string]string{"n": "1"}), metav1.UpdateOptions{})
	check(t, err)
	await("changed a")
	found, err := informer.Lister().ConfigMaps(ns).Get("a")
	check(t, err)
	expect(t, "n", found.Data["n"], "1")
	check(t, maps.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	await("deleted a")
	stop()
	factory.Shutdown()
}

func TestADynamicInformerFollowsACustomKind(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, 0, ns, nil)
	informer := factory.ForResource(fleets)
	seen := make(chan int64, 10)
	changed := func(obj any) {
		size, _, _ := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "spec", "size")
		seen <- size
	}
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
	})
	check(t, err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	client := untyped.Resource(fleets).Namespace(ns)
	made, err := client.Create(t.Context(), fleet(ns, "a", 2), metav1.CreateOptions{})
	check(t, err)
	check(t, unstructured.SetNestedField(made.Object, int64(3), "spec", "size"))
	_, err = client.Update(t.Context(), made, metav1.UpdateOptions{})
	check(t, err)
	for _, wanted := range []int64{2, 3} {
		select {
		case found := <-seen:
			expect(t, "size", found, wanted)
		case <-time.After(patience):
			t.Fatalf("size %d: not seen", wanted)
		}
	}
}
